// `kubectl port-forward` to a port on a pod's loopback, which only the pod itself and the kubelet reach.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

export interface Forwarding {
  readonly url: string;
  close(): Promise<void>;
}

/** @throws Error with kubectl's output if it ends at once */
export async function forwardLoopback(kubeconfig: string, namespace: string, pod: string, port: number): Promise<Forwarding> {
  const args = ["--kubeconfig", kubeconfig, "-n", namespace, "port-forward", `pod/${pod}`, `:${port}`];
  const child = spawn("kubectl", args, { stdio: ["ignore", "pipe", "inherit"] });
  const lines: string[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    lines.push(line);
    const [, local] = /^Forwarding from 127\.0\.0\.1:(\d+)/.exec(line) ?? [];
    if (local === undefined) continue;
    return {
      url: `http://127.0.0.1:${local}`,
      async close() {
        child.kill();
        await once(child, "exit");
      },
    };
  }
  throw new Error(`kubectl ${args.join(" ")} ended: ${lines.join("\n")}`);
}
