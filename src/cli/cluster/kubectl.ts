// The cluster by the user's kubectl, so that plugins for credentials, forward proxies and impersonation work as
// they do there. Invariant: no call outlives its time, whatever kubectl waits for.
import { execFile, spawn } from "node:child_process";
import { z } from "zod";
import { MeshError } from "../../base/errors.ts";
import { collectionPath, formatQuery, type ObjectRef, objectPath, type Resource } from "../../kube/client/resource.ts";
import type { KubeObject } from "../../kube/types.ts";
import type { Cluster, ClusterOptions, Forwarded } from "../frame/cluster.ts";
import { failure } from "../frame/command.ts";

const MAX_ANSWER_BYTES = 256 * 1024 * 1024;
const PAGE = 500;
/** kubectl starts, and asks once more what it needs to know of the API server. */
const START_MS = 2_000;

const LIST = z.looseObject({
  items: z.array(z.looseObject({})),
  metadata: z.looseObject({ continue: z.string().optional() }).optional(),
});

/** @throws MeshError `NO_KUBECTL` if there is no such program */
export async function kubectlCluster(options: ClusterOptions): Promise<Cluster> {
  const namespace = await runKubectl(options, ["config", "view", "--minify", "-o", "jsonpath={..namespace}"]);
  const raw = async (path: string): Promise<unknown> => JSON.parse(await runKubectl(options, ["get", "--raw", path]));
  return {
    namespace: namespace === "" ? "default" : namespace,
    get: async <T extends KubeObject>(resource: Resource<T>, ref: { name: string; namespace?: string }) =>
      (await raw(objectPath(resource, ref))) as T,
    async list<T extends KubeObject>(resource: Resource<T>, inNamespace?: string, labelSelector?: string) {
      const found: T[] = [];
      for (let next: string | undefined = ""; next !== undefined; ) {
        const query = formatQuery({ limit: PAGE, labelSelector, continue: next === "" ? undefined : next });
        const page = LIST.parse(await raw(`${collectionPath(resource, inNamespace)}${query}`));
        for (const item of page.items) found.push(item as unknown as T);
        next = page.metadata?.continue === "" ? undefined : page.metadata?.continue;
      }
      return found;
    },
    async patch(resource, { namespace: of = "", name }, patch, dryRun) {
      const type = `${resource.resource}.${resource.group}`;
      const more = dryRun ? ["--dry-run=server"] : [];
      await runKubectl(options, ["patch", type, name, "-n", of, "--type=merge", "-p", JSON.stringify(patch), ...more]);
    },
    forward: (pod, port) => forwardPort(options, pod, port),
  };
}

function forwardPort(options: ClusterOptions, { namespace = "", name }: ObjectRef, port: number): Promise<Forwarded> {
  const args = ["port-forward", `pod/${name}`, `:${port}`, "-n", namespace, "--address=127.0.0.1", ...accessFlags(options)];
  const child = spawn("kubectl", args, { stdio: ["ignore", "pipe", "pipe"] });
  const close = () => child.kill();
  let said = "";
  return new Promise<Forwarded>((resolve, reject) => {
    child.stdout.on("data", (chunk) => {
      const address = /Forwarding from (127\.0\.0\.1:\d+)/.exec(String(chunk))?.[1];
      if (address !== undefined) resolve({ url: `http://${address}`, close });
    });
    child.stderr.on("data", (chunk) => {
      said += chunk;
    });
    child.on("error", (error) => reject(failure("running kubectl port-forward", error)));
    child.on("close", () => reject(failure(said.trim() || "kubectl port-forward has ended")));
    AbortSignal.timeout(options.requestTimeoutMs + START_MS).addEventListener("abort", () => {
      reject(failure(`kubectl port-forward to pod ${name} was not ready in time`));
    });
  });
}

function accessFlags({ kubeconfig, context, as }: ClusterOptions): string[] {
  return Object.entries({ kubeconfig, context, as }).flatMap(([name, value]) =>
    value === undefined ? [] : [`--${name}=${value}`],
  );
}

async function runKubectl(options: ClusterOptions, args: readonly string[]): Promise<string> {
  const { requestTimeoutMs } = options;
  const withTimeout = [...args, ...accessFlags(options), `--request-timeout=${requestTimeoutMs}ms`];
  const limits = { timeout: requestTimeoutMs + START_MS, killSignal: "SIGKILL", maxBuffer: MAX_ANSWER_BYTES } as const;
  return new Promise((resolve, reject) => {
    execFile("kubectl", withTimeout, limits, (error, stdout, stderr) => {
      if (error === null) resolve(stdout);
      else reject(kubectlError(error, stderr.trim(), requestTimeoutMs));
    });
  });
}

function kubectlError(error: Error & { code?: unknown; killed?: boolean }, said: string, timeoutMs: number): MeshError {
  if (error.code === "ENOENT") return new MeshError("NO_KUBECTL", "there is no kubectl on the PATH");
  if (/\(NotFound\)/.test(said)) return new MeshError("NOT_FOUND", said);
  const isLate = error.killed === true || /deadline exceeded|Client\.Timeout|i\/o timeout/.test(said);
  if (isLate)
    return failure(`the API server has not answered within ${timeoutMs / 1_000} s; check it with: kubectl get --raw /readyz`);
  return failure(said === "" ? error.message : said);
}
