// The program ctrlmesh as people run it.
import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import type { MeshPod } from "./mesh.ts";
import { programMain } from "./programs.ts";

const MAIN = programMain("cli");
/** For calls of which no time is judged: on a busy machine a kubectl may take more than the 5 s that a request has by default. */
export const PATIENT = "--request-timeout=60s";

export interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
  readonly ms: number;
}

/** Never throws for an exit code. */
export function ctrlmesh(
  kubeconfig: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Ended> {
  const begin = performance.now();
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [MAIN, ...args],
      { env: { ...process.env, KUBECONFIG: kubeconfig, ...env }, timeout: 60_000 },
      (error, stdout, stderr) => {
        const code = typeof error?.code === "number" ? error.code : 0;
        resolve({ code, stdout, stderr, ms: performance.now() - begin });
      },
    );
  });
}

/** A kubectl that forwards ports as a kubelet would: the pods of this test are processes of this machine. All else is the real one's. */
export function forwardingKubectl(dir: string, pods: readonly MeshPod[]): void {
  const ports = pods.map(({ name, healthUrl }) => `${name} ${new URL(healthUrl).port}`);
  writeFileSync(join(dir, "ports"), `${ports.join("\n")}\n`);
  const script = `#!/bin/sh
if [ "$1" != port-forward ]; then PATH="\${PATH#*:}" exec kubectl "$@"; fi
port=$(sed -n "s/^\${2#pod/} //p" "${dir}/ports")
[ -n "$port" ] || { echo "error: unable to forward port" >&2; exit 1; }
echo "Forwarding from 127.0.0.1:$port -> 5441"
exec sleep 30
`;
  writeFileSync(join(dir, "kubectl"), script, { mode: 0o755 });
}
