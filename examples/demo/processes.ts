// The demo's processes: an API server, the manager, and for each pod a proxy and the operator. Invariant: all end with the demo
// (child-process.ts), the operators first, so that they can release their leases.
import { join } from "node:path";
import { MeshError } from "../../src/base/errors.ts";
import { type Child, startChild } from "../../test/support/child-process.ts";
import { ROOT } from "./manifests.ts";

export interface ApiServer {
  readonly server: string;
  readonly kubeconfig: string;
  /** PEM file. */
  readonly ca: string;
  /** A kubeconfig of a cluster administrator. */
  readonly token: string;
}

export interface ProxyReady {
  readonly url: string;
  readonly healthUrl: string;
  readonly egressUrl?: string;
  /** PEM file of the CA that an operator must trust. */
  readonly ca: string;
}

export interface ProxyOptions {
  readonly apiServer: ApiServer;
  /** host:port */
  readonly manager: string;
  readonly pod: { readonly namespace: string; readonly name: string; readonly uid: string };
  readonly dataDir: string;
  /** Further flags, without their dashes. */
  readonly flags: Readonly<Record<string, string>>;
}

export interface OperatorOptions {
  readonly pod: { readonly namespace: string; readonly name: string };
  readonly kubeconfig: string;
  readonly lockName: string;
  /** Further flags, without their dashes. */
  readonly flags: Readonly<Record<string, string>>;
}

export interface Processes {
  readonly count: number;
  /** @param name for messages; default "localkube" */
  apiServer(dir: string, auditLog: string, name?: string): Promise<ApiServer>;
  /** Resolves with host:port for the proxies. @param identity proxies must prove which pod they are */
  manager(kubeconfig: string, identity: boolean): Promise<string>;
  proxy(options: ProxyOptions): Promise<ProxyReady>;
  operator(options: OperatorOptions): Promise<void>;
  /** Ends the processes of a pod: the operator first, so that it can release its lease. */
  endPod(name: string): Promise<void>;
  /** @throws MeshError `CHILD_ENDED` with its last output if a process has ended */
  assertAlive(): void;
  stop(): Promise<void>;
}

const ANY_PORT = "127.0.0.1:0";
const LAST_WORDS = 5;
const GRACE_MS = 3_000;
// The demo has no change of the leader, so the times suit a busy machine.
const OPERATOR_LEASE = ["--lease-duration-ms", "10000", "--renew-deadline-ms", "8000", "--retry-period-ms", "500"];

export function createProcesses(): Processes {
  const children: Child[] = [];
  let stopping = false;

  const start = async (name: string, script: string, args: readonly string[], env?: Readonly<Record<string, string>>) => {
    const child = await startChild({
      name,
      command: process.execPath,
      args: [join(ROOT, script), ...args],
      readyLine: env === undefined,
      ...(env === undefined ? {} : { env }),
    });
    children.push(child);
    // The demo was interrupted while this process started.
    if (stopping) await child.stop();
    return child;
  };

  return {
    get count() {
      return children.length;
    },
    async apiServer(dir, auditLog, name = "localkube") {
      const { ready } = await start(name, "test/localkube/main.ts", ["--print-ready", "--dir", dir, "--audit-log", auditLog]);
      return ready as unknown as ApiServer;
    },
    async manager(kubeconfig, identity) {
      const args = ["--print-ready", "--kubeconfig", kubeconfig, "--grpc-listen", ANY_PORT, "--health-listen", ANY_PORT];
      const proof = identity ? ["--identity", "mesh", "--server-names", "127.0.0.1"] : [];
      const { ready } = await start("ctrlmesh-manager", "src/manager/main.ts", [...args, ...proof]);
      return String(ready.grpc);
    },
    async proxy({ apiServer, manager, pod, dataDir, flags }) {
      const { ready } = await start(`proxy of ${pod.name}`, "src/proxy/main.ts", [
        "--print-ready",
        "--api-server",
        apiServer.server,
        "--api-server-ca",
        apiServer.ca,
        "--manager",
        manager,
        "--pod-name",
        pod.name,
        "--pod-namespace",
        pod.namespace,
        "--pod-uid",
        pod.uid,
        "--data-dir",
        dataDir,
        "--listen",
        ANY_PORT,
        "--health-listen",
        ANY_PORT,
        ...flagsOf(flags),
      ]);
      return ready as unknown as ProxyReady;
    },
    async operator({ pod, kubeconfig, lockName, flags }) {
      const env = { KUBECONFIG: kubeconfig, POD_NAME: pod.name, POD_NAMESPACE: pod.namespace };
      const args = ["--leader-election-id", lockName, ...OPERATOR_LEASE, ...flagsOf(flags)];
      await start(`operator of ${pod.name}`, "examples/operator/main.ts", args, env);
    },
    async endPod(name) {
      for (const role of ["operator", "proxy"]) {
        const at = children.findIndex((child) => child.name === `${role} of ${name}`);
        if (at >= 0) await children.splice(at, 1)[0]?.stop(GRACE_MS);
      }
    },
    assertAlive() {
      const ended = stopping ? undefined : children.find(({ exited }) => exited);
      if (ended === undefined) return;
      const words = ended.output().split("\n").slice(-LAST_WORDS).join("\n");
      throw new MeshError("CHILD_ENDED", `${ended.name} has ended; its last output:\n${words}`);
    },
    async stop() {
      stopping = true;
      const operators = children.filter(({ name }) => name.startsWith("operator"));
      await Promise.all(operators.map((child) => child.stop(GRACE_MS)));
      await Promise.all(children.slice(1).map((child) => child.stop(GRACE_MS)));
      await children[0]?.stop(GRACE_MS);
    },
  };
}

function flagsOf(flags: Readonly<Record<string, string>>): string[] {
  return Object.entries(flags).flatMap(([name, value]) => [`--${name}`, value]);
}
