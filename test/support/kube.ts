// The real control plane for tests: etcd, kube-apiserver and, on request, kube-controller-manager and kube-scheduler, on
// free loopback ports with an audit log. Each e2e file has its own. Nothing is left behind: the program stops when its
// parent is gone, also after kill -9 or Ctrl-C.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Child, startChild } from "./child-process.ts";
import { goProgram } from "./go-build.ts";

export interface KubeOptions {
  readonly controllerManager?: boolean;
  readonly scheduler?: boolean;
  readonly featureGates?: string;
  /** Keep state here instead of in a temporary folder. */
  readonly dir?: string;
}

/** One line of the audit log, as far as tests read it (audit.k8s.io/v1 Event). */
export interface AuditEvent {
  readonly verb: string;
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
  readonly requestReceivedTimestamp: string;
}

export interface Kube {
  readonly server: string;
  readonly kubeconfig: string;
  readonly caFile: string;
  readonly caPem: string;
  /** Bearer token of a cluster administrator. */
  readonly token: string;
  readonly pid: number;
  readonly startupMs: number;
  /** What was written so far, oldest first. */
  audit(): AuditEvent[];
  /** kill -9, as in an outage. */
  crash(): Promise<void>;
  /** Starts again on the same ports with the same data. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

export async function startKube(options: KubeOptions = {}): Promise<Kube> {
  const binary = await goProgram("test/kube");
  const dir = options.dir ?? mkdtempSync(join(tmpdir(), "ctrlmesh-kube-"));
  const args = ["--dir", dir, "--audit", "--parent-pid", String(process.pid), "--stdin-lifetime"];
  if (options.controllerManager) args.push("--controller-manager");
  if (options.scheduler) args.push("--scheduler");
  if (options.featureGates) args.push("--feature-gates", options.featureGates);
  const start = () => startChild({ name: "kube", command: binary, args, readyMs: 60_000 });
  let child: Child = await start();
  const ready = child.ready as {
    server: string;
    kubeconfig: string;
    ca: string;
    token: string;
    auditLog: string;
    startupMs: number;
  };
  return {
    server: ready.server,
    kubeconfig: ready.kubeconfig,
    caFile: ready.ca,
    caPem: readFileSync(ready.ca, "utf8"),
    token: ready.token,
    startupMs: ready.startupMs,
    get pid() {
      return child.pid;
    },
    audit: () =>
      readFileSync(ready.auditLog, "utf8")
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => JSON.parse(line) as AuditEvent),
    async crash() {
      child.kill("SIGKILL");
      await child.stop();
    },
    async restart() {
      child = await start();
    },
    async stop() {
      await child.stop();
      if (options.dir === undefined) rmSync(dir, { recursive: true, force: true });
    },
  };
}
