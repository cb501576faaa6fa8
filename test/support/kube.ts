// The real control plane for tests: etcd, kube-apiserver and, on request, kube-controller-manager and kube-scheduler, on free
// loopback ports with an audit log. It is this project's binary (test/kube), or the programs in KUBEBUILDER_ASSETS. It stops when
// its parent has ended, also after kill -9 or Ctrl-C.
import { closeSync, fstatSync, mkdtempSync, openSync, readFileSync, readSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Child, startChild } from "./child-process.ts";
import { goProgram } from "./go-build.ts";
import { kubeAssetsFolder } from "./kube-assets/folder.ts";

export interface KubeOptions {
  readonly controllerManager?: boolean;
  /** With the controllers that mark silent nodes as lost and delete their pods. Default false, since most tests have no kubelet. */
  readonly nodeControllers?: boolean;
  readonly scheduler?: boolean;
  readonly featureGates?: string;
  /** How long the API server accepts a token that it has found valid, in milliseconds; default 1,000. Kubernetes has 10,000. */
  readonly tokenCacheMs?: number;
  /** Additional flags of kube-apiserver, such as "--goaway-chance=0.01". */
  readonly apiServerArgs?: readonly string[];
  /** The same of kube-controller-manager. */
  readonly controllerManagerArgs?: readonly string[];
  /** Keeps the state here instead of in a temporary folder. */
  readonly dir?: string;
  /** The port of the API server; by default a free one. */
  readonly port?: number;
  /** A command that runs the control plane, such as nsenter. */
  readonly within?: readonly string[];
}

/** One line of the audit log, as far as tests read it (audit.k8s.io/v1 Event). */
export interface AuditEvent {
  /** The same for all stages of one request. */
  readonly auditID: string;
  /** A watch has two lines: "ResponseStarted", and "ResponseComplete" at its end (none if the API server was killed before). */
  readonly stage: string;
  readonly verb: string;
  readonly requestURI?: string;
  readonly user: { readonly username: string; readonly extra?: Readonly<Record<string, readonly string[]>> };
  readonly userAgent?: string;
  readonly objectRef?: {
    readonly resource: string;
    readonly namespace?: string;
    readonly name?: string;
    readonly apiGroup?: string;
    readonly subresource?: string;
  };
  readonly responseStatus?: { readonly code: number };
  /** Annotations of admission, such as the webhook that was called: see the Kubernetes reference "Audit Annotations". */
  readonly annotations?: Readonly<Record<string, string>>;
  readonly requestReceivedTimestamp: string;
  /** When the response was complete. The line "ResponseStarted" of a watch has the time when the response began. */
  readonly stageTimestamp: string;
}

export interface Kube {
  readonly server: string;
  readonly kubeconfig: string;
  readonly caFile: string;
  readonly caPem: string;
  /** Bearer token of a cluster administrator. */
  readonly token: string;
  /** How long the API server accepts a token that it has found valid; 10,000 with KUBEBUILDER_ASSETS, which cannot have another. */
  readonly tokenCacheMs: number;
  readonly pid: number;
  readonly startupMs: number;
  /** When the current process started, in milliseconds since 1970. */
  readonly startedAtMs: number;
  /** The writes so far, oldest first, and the lists and watches of the test operator. */
  audit(): AuditEvent[];
  /** kill -9, as in an outage. */
  crash(): Promise<void>;
  /** Starts again on the same ports with the same data, and with other feature gates if given ("" for none). */
  restart(options?: Pick<KubeOptions, "featureGates">): Promise<void>;
  stop(): Promise<void>;
}

/** The ready line of either program. */
interface Announcement {
  readonly server: string;
  readonly kubeconfig: string;
  readonly ca: string;
  readonly token: string;
  readonly auditLog: string;
  readonly startupMs: number;
}

const ASSETS_LAUNCHER = fileURLToPath(new URL("./kube-assets/main.ts", import.meta.url));
const READY_MS = 90_000;
const LOG_LINES = 30;
/** Tests wait for this time and 2 s more wherever a manager starts and wherever a pod is removed by force. */
const SHORT_TOKEN_CACHE_MS = 1_000;
const KUBERNETES_TOKEN_CACHE_MS = 10_000;

/**
 * Starts a control plane, and builds the binary first if necessary. @throws Error with the end of its log if it does not start
 */
export async function startKube(options: KubeOptions = {}): Promise<Kube> {
  const program = await programFor(options);
  const dir = options.dir ?? mkdtempSync(join(tmpdir(), "ctrlmesh-kube-"));
  const args = [...program.args, "--dir", dir, "--audit", "--parent-pid", String(process.pid), "--stdin-lifetime"];
  if (options.controllerManager) args.push("--controller-manager");
  if (options.nodeControllers) args.push("--node-controllers");
  if (options.scheduler) args.push("--scheduler");
  let { featureGates = "" } = options;
  if (options.port !== undefined) args.push("--port", String(options.port));
  for (const arg of options.apiServerArgs ?? []) args.push(`--apiserver-arg=${arg}`);
  for (const arg of options.controllerManagerArgs ?? []) args.push(`--controller-manager-arg=${arg}`);
  const [command = "", ...before] = [...(options.within ?? []), program.command];
  let startedAtMs = 0;
  const start = () => {
    startedAtMs = Date.now();
    const gates = featureGates === "" ? [] : ["--feature-gates", featureGates];
    const child = { name: "kube", command, args: [...before, ...args, ...gates], readyMs: READY_MS };
    return startChild(child).catch((cause: unknown) => {
      throw new Error(`starting the control plane in ${dir}; its log ends with\n${endOfLog(dir)}`, { cause });
    });
  };
  let child: Child = await start();
  const ready = child.ready as unknown as Announcement;
  return {
    server: ready.server,
    kubeconfig: ready.kubeconfig,
    caFile: ready.ca,
    caPem: readFileSync(ready.ca, "utf8"),
    token: ready.token,
    tokenCacheMs: program.tokenCacheMs,
    startupMs: ready.startupMs,
    get startedAtMs() {
      return startedAtMs;
    },
    get pid() {
      return child.pid;
    },
    audit: auditReader(ready.auditLog),
    async crash() {
      child.kill("SIGKILL");
      await child.stop();
    },
    async restart(changed = {}) {
      featureGates = changed.featureGates ?? featureGates;
      child = await start();
    },
    async stop() {
      // An orderly shutdown takes a second, and is necessary only if the state is kept.
      if (options.dir === undefined) child.kill("SIGKILL");
      await child.stop();
      if (options.dir === undefined) rmSync(dir, { recursive: true, force: true });
    },
  };
}

interface Program {
  readonly command: string;
  readonly args: readonly string[];
  readonly tokenCacheMs: number;
}

async function programFor({ controllerManager, scheduler, tokenCacheMs = SHORT_TOKEN_CACHE_MS }: KubeOptions): Promise<Program> {
  const assets = kubeAssetsFolder([
    ...(controllerManager ? (["kube-controller-manager"] as const) : []),
    ...(scheduler ? (["kube-scheduler"] as const) : []),
  ]);
  if (assets !== undefined)
    return { command: process.execPath, args: [ASSETS_LAUNCHER], tokenCacheMs: KUBERNETES_TOKEN_CACHE_MS };
  return { command: await goProgram("test/kube"), args: ["--token-cache", `${tokenCacheMs}ms`], tokenCacheMs };
}

/** Parses each line of the audit log once, since tests read it again and again while they wait. */
function auditReader(file: string): () => AuditEvent[] {
  const events: AuditEvent[] = [];
  let readTo = 0;
  return () => {
    const fresh = readFrom(file, readTo);
    // The log grows while it is read, so what follows the last newline may be an incomplete event.
    const complete = fresh.subarray(0, fresh.lastIndexOf("\n") + 1);
    readTo += complete.length;
    for (const line of complete.toString("utf8").split("\n")) if (line !== "") events.push(JSON.parse(line) as AuditEvent);
    return [...events];
  };
}

function readFrom(path: string, position: number): Buffer {
  const file = openSync(path, "r");
  try {
    const buffer = Buffer.alloc(Math.max(0, fstatSync(file).size - position));
    return buffer.subarray(0, readSync(file, buffer, 0, buffer.length, position));
  } finally {
    closeSync(file);
  }
}

function endOfLog(dir: string): string {
  try {
    return readFileSync(join(dir, "kube.log"), "utf8").split("\n").slice(-LOG_LINES).join("\n");
  } catch {
    return "(no log)";
  }
}
