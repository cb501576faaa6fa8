// Runs kubectl as a user does. Returns its output; throws with its output if it fails.
import { execFile } from "node:child_process";

// Longer than any --timeout that a test passes to kubectl, since kubectl's own message is better.
const LIMIT_MS = 180_000;

export interface KubectlResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * Runs kubectl to its end. Never throws for an exit code.
 * @param env variables beside those of this process
 */
export function tryKubectl(
  kubeconfig: string,
  args: readonly string[],
  input?: string,
  env: Readonly<Record<string, string>> = {},
): Promise<KubectlResult> {
  return new Promise((resolve, reject) => {
    const child = execFile(
      "kubectl",
      ["--kubeconfig", kubeconfig, ...args],
      { maxBuffer: 512 * 1024 * 1024, timeout: LIMIT_MS, env: { ...process.env, ...env } },
      (error, stdout, stderr) => {
        if (error !== null && typeof error.code !== "number") reject(error);
        else resolve({ code: typeof error?.code === "number" ? error.code : 0, stdout, stderr });
      },
    );
    child.stdin?.on("error", () => undefined); // kubectl may end before it has read its input
    child.stdin?.end(input ?? "");
  });
}

/** Runs kubectl and returns its output. @throws Error with kubectl's output if it fails */
export async function kubectl(kubeconfig: string, args: readonly string[], input?: string): Promise<string> {
  const { code, stdout, stderr } = await tryKubectl(kubeconfig, args, input);
  if (code !== 0) throw new Error(`kubectl ${args.join(" ")}: exit ${code}\n${stderr}`);
  return stdout;
}
