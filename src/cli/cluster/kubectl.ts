// The cluster by the user's kubectl, so that plugins for credentials, forward proxies and impersonation work as
// they do there.

import { MeshError } from "../../base/errors.ts";
import { tryParseJson } from "../../base/json.ts";
import { type ObjectRef, resourceName } from "../../kube/client/resource.ts";
import type { KubeObject } from "../../kube/types.ts";
import { type Cluster, type ClusterOptions, FIELD_MANAGER, type Forwarded, type Watcher } from "../frame/cluster.ts";
import { CREDENTIALS_REFUSED, failure, noAnswer, noAnswerWithin, notLoggedIn } from "../frame/command.ts";
import { accessFlags } from "../frame/flags.ts";
import { readAnswer } from "../frame/read-answer.ts";
import { OBJECT, rawReads } from "./raw-cluster.ts";
import { runKubectl, startError, startKubectl, stop } from "./run-kubectl.ts";

/** kubectl starts, and asks once more what it needs to know of the API server. */
const START_MS = 2_000;
/** It reads files only. */
const CONFIG_MS = 15_000;
/** The kubectl of gcloud asks the API server for its version before it reads the files, and does without an answer. */
const CONFIG_FLAGS = ["--minify", "-o", "jsonpath={..namespace}", "--request-timeout=1s"];

/** @throws MeshError `NO_KUBECTL` if there is no such program */
export async function kubectlCluster(options: ClusterOptions): Promise<Cluster> {
  const run = (args: readonly string[]) => kubectl(options, args);
  return {
    namespace: await contextNamespace(options),
    ...rawReads(async (path) => {
      const text = await run(["get", "--raw", path]);
      const answer = tryParseJson(Buffer.from(text));
      if (answer === undefined) throw failure(`kubectl get --raw ${path} has printed no JSON, but: ${text.slice(0, 200)}`);
      return answer;
    }),
    async may(verb, resource, group) {
      const args = ["auth", "can-i", verb, resourceName({ group, resource }), "--all-namespaces", ...accessFlags(options)];
      const { code, stdout, stderr } = await runKubectl(args, options.requestTimeoutMs + START_MS);
      const word = stdout.trim().split("\n").at(-1) ?? "";
      // "no" may have a reason behind it.
      if (word !== "yes" && !word.startsWith("no")) throw kubectlError(code, stderr, options.requestTimeoutMs);
      return word === "yes";
    },
    async patch(resource, { namespace = "", name }, patch, dryRun) {
      const more = dryRun ? ["--dry-run=server"] : [];
      await run([
        "patch",
        resourceName(resource),
        "-n",
        namespace,
        "--type=merge",
        "-p",
        JSON.stringify(patch),
        `--field-manager=${FIELD_MANAGER}`,
        ...more,
        "--",
        name,
      ]);
    },
    async dryRunCreate(_, object) {
      const args = ["create", "--dry-run=server", "-o", "json", "-f", "-"];
      const { stdout, stderr } = await ended(options, args, JSON.stringify(object));
      const stored = tryParseJson(Buffer.from(stdout));
      const warnings = stderr.split("\n").filter((line) => line.startsWith("Warning: "));
      return { object: readAnswer(OBJECT, stored, "the created object") as KubeObject, warnings };
    },
    async dryRunApply(object, serverSideAs) {
      // GitOps tools force conflicts too.
      const how = serverSideAs === undefined ? [] : ["--server-side", "--force-conflicts", `--field-manager=${serverSideAs}`];
      const args = ["apply", ...how, "--dry-run=server", "-o", "json", "-f", "-"];
      const { stdout } = await ended(options, args, JSON.stringify(object));
      return readAnswer(OBJECT, tryParseJson(Buffer.from(stdout)), "the applied object") as KubeObject;
    },
    forward: (pod, port) => forwardPort(options, pod, port),
    watcher: () => watcher(options),
  };
}

// Without a kubeconfig, kubectl uses the pod's service account, but has no context to show.
async function contextNamespace(options: ClusterOptions): Promise<string> {
  const args = ["config", "view", ...CONFIG_FLAGS, ...accessFlags(options)];
  const { code, stdout, stderr } = await runKubectl(args, CONFIG_MS);
  if (code === undefined) throw failure(`kubectl config view has not ended within ${CONFIG_MS / 1_000} s`);
  if (code !== 0 && !stderr.includes("current-context must exist")) throw failure(stderr || "kubectl config view has failed");
  return /^[a-z0-9-]+$/.test(stdout) ? stdout : "default";
}

async function kubectl(options: ClusterOptions, args: readonly string[]): Promise<string> {
  return (await ended(options, args)).stdout;
}

async function ended(options: ClusterOptions, args: readonly string[], input?: string) {
  const { requestTimeoutMs } = options;
  const flags = [...accessFlags(options), `--request-timeout=${requestTimeoutMs}ms`];
  const at = args.indexOf("--");
  const all = at < 0 ? [...args, ...flags] : [...args.slice(0, at), ...flags, ...args.slice(at)];
  const { code, stdout, stderr } = await runKubectl(all, requestTimeoutMs + START_MS, input);
  if (code === 0) return { stdout, stderr };
  throw kubectlError(code, stderr, requestTimeoutMs);
}

function kubectlError(code: number | undefined, said: string, timeoutMs: number): MeshError {
  if (/\(NotFound\)/.test(said)) return new MeshError("NOT_FOUND", said);
  if (/must be logged in to the server|asked for the client to provide credentials/.test(said))
    return notLoggedIn(CREDENTIALS_REFUSED);
  // It has asked for a user name on its stdin.
  if (said === "error: EOF") return notLoggedIn("the user of the kubeconfig has no credentials");
  if (code === undefined || /deadline exceeded|Client\.Timeout|i\/o timeout/.test(said)) return noAnswerWithin(timeoutMs);
  if (/connection refused|connection reset|no route to host|Unable to connect|EOF$|ServiceUnavailable|TooManyRequests/.test(said))
    return noAnswer(said);
  return failure(said === "" ? `kubectl has ended with exit code ${code}` : said);
}

function forwardPort(options: ClusterOptions, { namespace = "", name }: ObjectRef, port: number): Promise<Forwarded> {
  const flags = ["-n", namespace, "--address=127.0.0.1", ...accessFlags(options)];
  const child = startKubectl(["port-forward", `pod/${name}`, `:${port}`, ...flags]);
  const close = () => stop(child);
  let [said, complaint] = ["", ""];
  const opened = new Promise<Forwarded>((resolve, reject) => {
    child.stdout.on("data", (chunk) => {
      said = `${said}${chunk}`.slice(-1_000);
      const address = /Forwarding from (127\.0\.0\.1:\d+)/.exec(said)?.[1];
      if (address !== undefined) resolve({ url: `http://${address}`, close });
    });
    child.stderr.on("data", (chunk) => {
      complaint = `${complaint}${chunk}`.slice(0, 1_000);
    });
    child.on("error", (error) => reject(startError(error)));
    child.on("close", () => reject(failure(complaint.trim() || "kubectl port-forward has ended")));
    AbortSignal.timeout(options.requestTimeoutMs + START_MS).addEventListener("abort", () => {
      reject(noAnswer(`kubectl port-forward to pod ${name} was not ready in time`));
    });
  });
  opened.catch(close);
  return opened;
}

/** Both are loaded only here: the client takes a moment, which other commands should not need. */
async function watcher(options: ClusterOptions): Promise<Watcher> {
  // There Node knows no Unix sockets, and a port would be open to every user of the machine.
  if (process.platform === "win32") return (await (await import("./direct.ts")).directCluster(options)).watcher();
  return (await import("./kubectl-proxy.ts")).proxyWatcher(options);
}
