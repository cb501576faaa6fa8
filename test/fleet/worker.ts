// A process of simulated proxies, controlled by IPC; see fleet.ts.

import { credentials, Metadata } from "@grpc/grpc-js";
import type { PodRef } from "../../src/mesh/contract/messages.ts";
import { ownersOf } from "../../src/mesh/ownership/owners.ts";
import { createSharedWire } from "./shared-wire.ts";
import { type SimulatedProxy, startSimulatedProxy } from "./simulated-proxy.ts";
import { createSlots } from "./slots.ts";

export interface FleetPod extends PodRef {
  /** The token for the manager; undefined if it needs none. */
  readonly token: string | undefined;
}

export type ToWorker =
  /** @param trustPem the mesh's CA; undefined: in plain text */
  | { readonly kind: "start"; readonly pods: readonly FleetPod[]; readonly trustPem: string | undefined }
  | { readonly kind: "endpoints"; readonly endpoints: readonly string[] }
  /** Answers once all proxies know this owner of the namespace. */
  | { readonly kind: "await-owner"; readonly id: number; readonly namespace: string; readonly owner: string }
  /** Answers once all proxies are served by a manager of at least this epoch and enforce a snapshot. */
  | { readonly kind: "await-served"; readonly id: number; readonly epoch: number }
  | { readonly kind: "counts"; readonly id: number };

export interface FromWorker {
  readonly id: number;
  /** Wall time. */
  readonly atMs: number;
  readonly counts: SimulatedProxy["counts"];
  /** The highest epoch that a proxy has seen. */
  readonly epoch: number;
  /** Snapshots by the epoch of the leader that sent them. */
  readonly snapshotsOf: Readonly<Record<number, number>>;
}

/** The limit of concurrent handshakes in one process. */
const HANDSHAKES = 32;
const SERVER_NAME = "ctrlmesh-manager.ctrlmesh-system.svc";

const wire = createSharedWire();
const handshakes = createSlots(HANDSHAKES);
const proxies: SimulatedProxy[] = [];
const conditions = new Map<number, (proxy: SimulatedProxy) => boolean>();
const unmet = new Map<number, Set<SimulatedProxy>>();
let endpoints: readonly string[] = [];

function answer(id: number): void {
  const counts = { wholes: 0, deltas: 0, registrations: 0, bytes: 0, bytesSaid: 0 };
  for (const proxy of proxies) {
    for (const name of ["wholes", "deltas", "registrations", "bytes", "bytesSaid"] as const) counts[name] += proxy.counts[name];
  }
  const epoch = Math.max(0, ...proxies.map((proxy) => proxy.epoch));
  const snapshotsOf: Record<number, number> = {};
  for (const proxy of proxies) {
    for (const [of, count] of proxy.snapshotsOf) snapshotsOf[of] = (snapshotsOf[of] ?? 0) + count;
  }
  process.send?.({ id, atMs: performance.timeOrigin + performance.now(), counts, epoch, snapshotsOf } satisfies FromWorker);
}

function check(proxy: SimulatedProxy): void {
  for (const [id, condition] of conditions) {
    const left = unmet.get(id);
    if (left === undefined) continue;
    if (condition(proxy)) left.delete(proxy);
    else left.add(proxy);
    if (left.size > 0) continue;
    conditions.delete(id);
    unmet.delete(id);
    answer(id);
  }
}

function awaitAll(id: number, condition: (proxy: SimulatedProxy) => boolean): void {
  conditions.set(id, condition);
  unmet.set(id, new Set(proxies.filter((proxy) => !condition(proxy))));
  if (unmet.get(id)?.size !== 0) return;
  conditions.delete(id);
  unmet.delete(id);
  answer(id);
}

process.on("message", (message: ToWorker) => {
  switch (message.kind) {
    case "start": {
      const { pods, trustPem } = message;
      const how = trustPem === undefined ? credentials.createInsecure() : credentials.createSsl(Buffer.from(trustPem));
      const common = { endpoints: () => endpoints, wire, handshakes, onChange: check };
      for (const { token, ...pod } of pods) {
        const metadata = new Metadata();
        if (token !== undefined) metadata.set("authorization", `Bearer ${token}`);
        const pass = { credentials: how, channelOptions: { "grpc.ssl_target_name_override": SERVER_NAME }, metadata };
        proxies.push(startSimulatedProxy({ pod, pass, ...common }));
      }
      return;
    }
    case "endpoints":
      endpoints = message.endpoints;
      return;
    case "await-owner": {
      const known = new Map<string, boolean>();
      awaitAll(message.id, ({ enforced }) => {
        if (enforced === undefined) return false;
        let is = known.get(enforced.digest);
        if (is === undefined) {
          const owner = ownersOf(enforced.table, "", "configmaps").ownerOf(message.namespace);
          is = owner.kind === "subset" && owner.subset === message.owner;
          known.set(enforced.digest, is);
        }
        return is;
      });
      return;
    }
    case "await-served":
      awaitAll(message.id, (proxy) => proxy.isServed && proxy.enforced !== undefined && proxy.epoch >= message.epoch);
      return;
    case "counts":
      answer(message.id);
      return;
    default:
      message satisfies never;
  }
});
process.on("disconnect", () => process.exit(0));
