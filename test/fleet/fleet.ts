// Many simulated proxies in a few processes. Each process reports for its own proxies, and a result is complete when all processes have reported.
import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { FleetPod, FromWorker, ToWorker } from "./worker.ts";

const WORKER = fileURLToPath(new URL("./worker.ts", import.meta.url));

export interface FleetCounts {
  wholes: number;
  deltas: number;
  registrations: number;
  /** Messages to the proxies and from them. */
  bytes: number;
  bytesSaid: number;
  /** The newest epoch that a proxy has seen. */
  epoch: number;
  /** Snapshots by the epoch of the leader that sent them. */
  snapshotsOf: Record<number, number>;
}

export interface Fleet {
  /** The replicas of the service. */
  setEndpoints(endpoints: readonly string[]): void;
  /** Resolves with the wall time when the last proxy knew this owner of the namespace. */
  ownerKnown(namespace: string, owner: string): Promise<number>;
  /** Resolves with the wall time when the last proxy was served by a manager of at least this epoch. */
  served(epoch?: number): Promise<number>;
  counts(): Promise<FleetCounts>;
  stop(): void;
}

export interface FleetOptions {
  readonly pods: readonly FleetPod[];
  readonly endpoints: readonly string[];
  readonly processes: number;
  /** The mesh's CA; undefined: in plain text. */
  readonly trustPem: string | undefined;
}

export function startFleet({ pods, endpoints, processes, trustPem }: FleetOptions): Fleet {
  const waiting = new Map<number, (answer: FromWorker) => void>();
  let lastId = 0;
  const workers = Array.from({ length: processes }, (_, index) => {
    const worker = fork(WORKER, { stdio: "inherit", execArgv: [] });
    worker.on("message", (message: FromWorker) => {
      waiting.get(message.id)?.(message);
      waiting.delete(message.id);
    });
    tell(worker, { kind: "endpoints", endpoints });
    tell(worker, { kind: "start", pods: pods.filter((_pod, at) => at % processes === index), trustPem });
    return worker;
  });
  const ask = (message: (id: number) => ToWorker): Promise<FromWorker[]> =>
    Promise.all(
      workers.map(
        (worker) =>
          new Promise<FromWorker>((resolve) => {
            const id = ++lastId;
            waiting.set(id, resolve);
            tell(worker, message(id));
          }),
      ),
    );
  const lastOf = (answers: readonly FromWorker[]) => Math.max(...answers.map(({ atMs }) => atMs));
  return {
    setEndpoints: (next) => {
      for (const worker of workers) tell(worker, { kind: "endpoints", endpoints: next });
    },
    ownerKnown: async (namespace, owner) => lastOf(await ask((id) => ({ kind: "await-owner", id, namespace, owner }))),
    served: async (epoch = 0) => lastOf(await ask((id) => ({ kind: "await-served", id, epoch }))),
    async counts() {
      const sum: FleetCounts = { wholes: 0, deltas: 0, registrations: 0, bytes: 0, bytesSaid: 0, epoch: 0, snapshotsOf: {} };
      for (const { counts, epoch, snapshotsOf } of await ask((id) => ({ kind: "counts", id }))) {
        for (const name of ["wholes", "deltas", "registrations", "bytes", "bytesSaid"] as const) sum[name] += counts[name];
        sum.epoch = Math.max(sum.epoch, epoch);
        for (const [of, count] of Object.entries(snapshotsOf)) {
          sum.snapshotsOf[Number(of)] = (sum.snapshotsOf[Number(of)] ?? 0) + count;
        }
      }
      return sum;
    },
    stop() {
      for (const worker of workers) worker.disconnect();
    },
  };
}

function tell(worker: ChildProcess, message: ToWorker): void {
  worker.send(message);
}
