// Moves many namespaces in one edit of a VirtualApp (onLoss: InPlace) from the default subset's operator to v2's, and measures
// the times and the cost for the API server and the mesh. Called by bench/handover.ts and test/nightly/handover-scale.test.ts.
import { setTimeout as sleep } from "node:timers/promises";
import { VIRTUAL_APPS } from "../../src/api/resources.ts";
import { eventually } from "../support/eventually.ts";
import { startKube } from "../support/kube.ts";
import { FOOS, type Mesh, type MeshPod, startMesh } from "../support/mesh.ts";
import { createProbe } from "../support/probe.ts";
import { readMetrics } from "../support/proxy-metrics.ts";
import { type FooInformer, startFooInformer } from "./informer.ts";
import { isConverged, regexApp, setRegex } from "./regex-app.ts";
import { parseRequestCounts, requestsBetween } from "./server-requests.ts";

export interface HandoverOptions {
  readonly namespaces: number;
  readonly foosEach: number;
  readonly note?: (text: string) => void;
}

/** Times are milliseconds since the edit was sent. */
export interface HandoverReport {
  /** The new owner's proxy serves the first namespace, so everything has been acknowledged and granted. */
  readonly grantedMs: number;
  /** The informer behind the new owner's proxy has every Foo. */
  readonly seenMs: number;
  /** The informer behind the old owner's proxy has no Foo. */
  readonly removedMs: number;
  /** The new owner's operator has written its first status. */
  readonly firstReconciledMs: number;
  /** The new owner's operator has written its last status. It reconciles one object after the other. */
  readonly reconciledMs: number;
  /** The VirtualApp's Converged is True for the edit. */
  readonly convergedMs: number;
  /** `lastHandover.noWriterSeconds` of the status, if it is set. */
  readonly noWriterSeconds: number | undefined;
  /** The number of snapshots and deltas that proxies acknowledged for the handover. */
  readonly acknowledged: number;
  /** The number of requests until both informers were up to date, by verb and resource. The operators' own writes are not included. */
  readonly requests: Readonly<Record<string, number>>;
  /** The old owner's writes that ended after the new owner's first write. */
  readonly writesByOldOwner: readonly string[];
}

const KEY = { namespace: "foo-system", name: "foo-operator" };
const nameOf = (index: number) => `hand-${String(index).padStart(4, "0")}`;
const isMoved = (namespace: string) => namespace.startsWith("hand-");

export async function runHandover({ namespaces, foosEach, note = () => {} }: HandoverOptions): Promise<HandoverReport> {
  const kube = await startKube({ controllerManager: true });
  const mesh = await startMesh({ kube, restarts: true });
  const informers: FooInformer[] = [];
  try {
    await mesh.apply(regexApp(mesh, "^nothing$"));
    const from = await mesh.addPod({ name: "foo-0", labels: { version: "v1" }, operator: true });
    const to = await mesh.addPod({ name: "foo-canary-0", labels: { version: "v2" }, operator: true });
    // The pods run first, so that the first owner reconciles while the Foos are created.
    note(`creating ${namespaces} namespaces with ${foosEach} Foos each`);
    await populate(mesh, namespaces, foosEach);
    note("waiting until the first owner has reconciled all Foos");
    await untilReconciled(mesh, from, namespaces * foosEach);
    for (const pod of [from, to]) informers.push(await startFooInformer(pod, kube.token));
    await sleep(2_000); // so that late requests of the creation are not counted
    note("handing over");
    return await measure(mesh, { from, to, informers, total: namespaces * foosEach }, note);
  } finally {
    for (const informer of informers) await informer.stop();
    await mesh.stop();
    await kube.stop();
  }
}

interface Sides {
  readonly from: MeshPod;
  readonly to: MeshPod;
  readonly informers: readonly FooInformer[];
  readonly total: number;
}

async function measure(mesh: Mesh, { from, to, informers, total }: Sides, note: (text: string) => void): Promise<HandoverReport> {
  const { client, kube } = mesh;
  const direct = createProbe({ url: kube.server, caPem: kube.caPem, token: kube.token, keep: false });
  const through = createProbe({ url: to.proxyUrl, caPem: to.proxyCaPem, token: kube.token, keep: false });
  try {
    const asked = async () => parseRequestCounts((await direct.get("/metrics")).body.toString());
    const [askedBefore, acksBefore] = [await asked(), await acks(mesh)];
    const editedAtMs = Date.now();
    const start = performance.now();
    const generation = await setRegex(mesh, "^hand-");
    const when = async (check: () => boolean | Promise<boolean>) => {
      await eventually(check, { withinMs: 300_000, everyMs: 20 });
      return Math.round(performance.now() - start);
    };
    const [old, next] = informers;
    const [grantedMs, seenMs, removedMs, convergedMs] = await Promise.all([
      when(async () => (await through.get(`/apis/demo.ctrlmesh.io/v1/namespaces/${nameOf(0)}/foos/foo-0`)).status === 200),
      when(() => next?.count(isMoved) === total),
      when(() => old?.count(isMoved) === 0),
      when(() => isConverged(mesh, generation)),
    ]);
    const requests = requestsBetween(askedBefore, await asked(), isOfHandover);
    const acknowledged = (await acks(mesh)) - acksBefore;
    note(`granted in ${grantedMs} ms, shown in ${seenMs} ms; waiting until the new owner has reconciled all Foos`);
    await untilReconciled(mesh, to, total);
    const noWriterSeconds = (await client.get(VIRTUAL_APPS, KEY)).status?.lastHandover?.noWriterSeconds;
    const times = { grantedMs, seenMs, removedMs, convergedMs, noWriterSeconds, acknowledged, requests };
    return { ...times, ...workOf(mesh, from, to, editedAtMs) };
  } finally {
    await direct.close();
    await through.close();
  }
}

/** The operators' work in the audit log. */
function workOf(mesh: Mesh, from: MeshPod, to: MeshPod, editedAtMs: number) {
  const writes = mesh.podWrites().filter(({ namespace }) => isMoved(namespace));
  const own = writes.filter(({ pod }) => pod === to.name);
  const firstMs = own.reduce((least, { receivedMs }) => Math.min(least, receivedMs), Number.POSITIVE_INFINITY);
  const done = own.filter(({ resource, code }) => resource === "foos/status" && code < 300).map(({ answeredMs }) => answeredMs);
  const since = (ms: number) => Math.round(ms - editedAtMs);
  return {
    firstReconciledMs: since(done.reduce((least, ms) => Math.min(least, ms), Number.POSITIVE_INFINITY)),
    reconciledMs: since(done.reduce((most, ms) => Math.max(most, ms), 0)),
    writesByOldOwner: writes
      .filter(({ pod, answeredMs }) => pod === from.name && answeredMs > firstMs)
      .map(({ verb, resource, namespace, name }) => `${verb} ${resource} ${namespace}/${name}`),
  };
}

// GETs are this program's own polls. The operators' writes do not belong to the handover.
const OPERATORS_WORK = /^(POST|PUT|PATCH) (foos\/status|configmaps|leases|events)$/;

function isOfHandover(key: string): boolean {
  return /^(LIST|WATCH|POST|PUT|PATCH|APPLY|DELETE) /.test(key) && !OPERATORS_WORK.test(key);
}

async function populate(mesh: Mesh, namespaces: number, foosEach: number): Promise<void> {
  let next = 0;
  const worker = async () => {
    for (let index = next++; index < namespaces; index = next++) {
      await mesh.createNamespace(nameOf(index));
      for (let foo = 0; foo < foosEach; foo++) await mesh.createFoo(nameOf(index), `foo-${foo}`, "x");
    }
  };
  await Promise.all(Array.from({ length: 16 }, worker));
}

async function untilReconciled(mesh: Mesh, by: MeshPod, total: number): Promise<void> {
  const count = async () => {
    const { items } = await mesh.client.list(FOOS);
    return items.filter(
      ({ status, metadata }) => status?.reconciledBy === by.name && status.observedGeneration === metadata.generation,
    ).length;
  };
  await eventually(async () => (await count()) === total, { withinMs: 600_000, everyMs: 1_000 });
}

async function acks(mesh: Mesh): Promise<number> {
  return (await readMetrics(String(mesh.manager.ready.health))).sum("ctrlmesh_manager_snapshot_ack_seconds_count");
}
