// What a manager of the model does: it carries out the effects of the shipping core, and plans with the shipping planner.

import { factsOf } from "../../src/manager/server/proxy-reports.ts";
import type { ProxyMessage, ResourceMessage } from "../../src/mesh/contract/messages.ts";
import { claimedRoute, ROUTE } from "../../src/mesh/contract/route-type.ts";
import { nextIssue } from "../../src/mesh/handover/issue.ts";
import { planApp } from "../../src/mesh/handover/plan-app.ts";
import { type PodKey, podKey } from "../../src/mesh/handover/proxy-facts.ts";
import type { Updates } from "../../src/mesh/link/delivery.ts";
import { type StreamEffect, type StreamEvent, type StreamFacts, stepStream } from "../../src/mesh/link/manager-stream.ts";
import { disconnect, type ProxyRecord, register } from "../../src/mesh/link/proxy-record.ts";
import { type RecordEvent, stepRecord } from "../../src/mesh/link/record-step.ts";
import { claimsFrom } from "../../src/mesh/link/registration.ts";
import { NO_CALLER_POLICY, type Snapshot } from "../../src/mesh/ownership/snapshot.ts";
import { appPod } from "../support/pod-facts.ts";
import { APP, hasInside, rulesBy, SUBSETS } from "./rules.ts";
import { intern, tableByHash } from "./snapshots.ts";
import { type ModelManager, type World, withManager, withStream } from "./world.ts";

type Gone = ModelManager["gone"][number];

export const keyOf = (name: string): PodKey => podKey({ namespace: APP.namespace, name });

/** @param hasRoom for the tables that come with a promise */
export function enterStream(world: World, id: number, event: StreamEvent, hasRoom = true): World {
  const stream = world.streams.find((each) => each.id === id);
  const manager = stream && world.managers[stream.manager];
  if (stream === undefined || manager === undefined) return world;
  const epoch = manager.leads ? manager.epoch : undefined;
  const facts: StreamFacts = {
    nowMs: () => world.nowMs,
    epoch: () => epoch,
    judge: ({ pod }) => {
      if (epoch === undefined) return { kind: "redirect", endpoint: "" };
      const isThere = world.proxies.some(({ name, isThere: is }) => is && name === pod?.name);
      return isThere ? { kind: "serve" } : { kind: "refuse", message: "there is no such pod" };
    },
    refusal: () => undefined,
    wantedTables: () => [],
  };
  const { state, effects } = stepStream(stream.state, event, facts);
  const next = withStream(world, id, () => ({ state }));
  return effects.reduce((before, effect) => carryOut(before, id, effect, hasRoom), next);
}

function carryOut(world: World, id: number, effect: StreamEffect, hasRoom: boolean): World {
  const stream = world.streams.find((each) => each.id === id);
  if (stream === undefined) return world;
  const key = keyOf(world.proxies[stream.proxy]?.name ?? "");
  switch (effect.kind) {
    case "write":
    case "welcome":
      return withStream(world, id, ({ down }) => ({ down: [...down, effect.message] }));
    case "redirect":
    case "fail":
      return withStream(world, id, ({ down }) => ({ down: [...down, "end"] }));
    case "serve":
      return serve(world, stream.manager, id, effect, hasRoom ? routeInTables : () => undefined);
    case "deliver":
      return deliver(world, stream.manager, id, key, effect.message);
    case "unregister": {
      const record = recordOf(world, stream.manager, key, id);
      return record === undefined ? world : withRecord(world, stream.manager, key, disconnect(record));
    }
    default:
      return world; // a second look, and the news of a newer epoch, which the lease tells as well
  }
}

function serve(
  world: World,
  at: number,
  id: number,
  effect: Extract<StreamEffect, { kind: "serve" }>,
  routeOf: (named: ResourceMessage) => Snapshot | undefined,
): World {
  const manager = managerAt(world, at);
  const { pod, streamNumber, capabilities, route } = effect.registration;
  const registration = { uid: pod?.uid ?? "", streamNumber, capabilities, route: claimsFrom(route, routeOf) };
  const known = { epoch: manager.knownEpoch, records: manager.records };
  const { records, ends } = register(known, { key: keyOf(pod?.name ?? ""), registration, stream: id, epoch: effect.epoch });
  const next = withManager(world, at, { knownEpoch: effect.epoch, records: new Map([...manager.records, ...records]) });
  return ends.reduce(
    (before, [ended, reason]) => enterStream(before, ended, { kind: "end", status: "UNAVAILABLE", reason }),
    next,
  );
}

function routeInTables(named: ResourceMessage): Snapshot | undefined {
  const { tableHashes, withTables } = claimedRoute(named);
  return tableHashes.length > 0 && tableHashes.every(tableByHash) ? intern(withTables(tableByHash)) : undefined;
}

function deliver(world: World, at: number, id: number, key: PodKey, message: ProxyMessage): World {
  const record = recordOf(world, at, key, id);
  if (record === undefined) return world;
  if ("ack" in message) return enterRecord(world, at, key, record, { kind: "acked", nonce: message.ack.nonce });
  return "nack" in message ? enterRecord(world, at, key, record, { kind: "nacked", nack: message.nack }) : world;
}

const UPDATES: Updates = {
  get(type, base, next, lastNonce) {
    const body = base === undefined ? type.encode(next) : type.delta?.encode(base, next);
    if (body === undefined) return UPDATES.get(type, undefined, next, lastNonce);
    const resource = { type: type.name, version: next.version, digest: next.digest, body };
    return { nonce: lastNonce + 1, resource, baseDigest: base?.digest ?? "" };
  },
};

function enterRecord(world: World, at: number, key: PodKey, record: ProxyRecord<number>, event: RecordEvent): World {
  const { state, effects } = stepRecord(record, ROUTE, event, UPDATES);
  const kept = state === record ? world : withRecord(world, at, key, state);
  return effects.reduce((before, effect) => {
    if (effect.kind !== "send" || state.stream === undefined) return before;
    return enterStream(before, state.stream, { kind: "send", message: { update: effect.update } });
  }, kept);
}

/** True if something has changed by which it plans: as the queue of the controller has it. */
export function needsPlan(world: World, at: number): boolean {
  const { planned, records, gone, leads } = world.managers[at] ?? { leads: false };
  const { wish, pause, knowsInside } = planned ?? {};
  const isSpecPlanned = wish === world.wish && pause === world.pause && knowsInside === world.knowsInside;
  return leads && !(isSpecPlanned && planned?.records === records && planned?.gone === gone);
}

/** Plans the app and publishes the routes of every pod. */
export function plan(world: World, at: number): World {
  const manager = managerAt(world, at);
  const { wish, pause, knowsInside } = world;
  const pods = world.proxies.flatMap(({ name, subset, isThere }) => (isThere ? [appPod(name, subset)] : []));
  const facts = (key: PodKey) => {
    const record = manager.records.get(key);
    return record && factsOf(record);
  };
  const rules = rulesBy(world.places)[wish];
  if (rules === undefined) throw new Error(`there is no wish ${wish}`);
  const made = planApp({
    app: APP,
    words: undefined,
    ...rules,
    clusterTables: knowsInside ? rules.clusterTables : new Map(),
    pods,
    factsOf: facts,
    subsets: SUBSETS,
    lockName: "lock",
    callers: NO_CALLER_POLICY,
    guard: undefined,
    isPaused: pause === "all",
    maxMovingPercent: pause === "percent" ? 0 : undefined,
    ownersHashes: world.ownersHashes,
    keptSubsets: undefined,
    retainsLosses: false,
    gone: manager.gone.flatMap(({ pod, untilMs }) => (untilMs > world.nowMs ? [pod] : [])),
    goneAbroad: manager.gone.map(({ pod }) => pod),
  });
  const issue = nextIssue(manager.issue, world.statusVersion, made, pods, facts);
  const statusVersion = Math.max(world.statusVersion, issue.version);
  const ownersHashes = hasInside(world.places) ? made.ownersHashes : undefined;
  let next = withManager({ ...world, statusVersion, ownersHashes }, at, { issue });
  for (const pod of pods) {
    const key = podKey(pod);
    const routes = issue.snapshots.get(made.rulesFor(pod).digest);
    const record = managerAt(next, at).records.get(key);
    if (routes === undefined || record === undefined) continue;
    next = enterRecord(next, at, key, record, { kind: "published", resource: intern(routes) });
  }
  return withManager(next, at, {
    planned: { wish, pause, knowsInside, records: managerAt(next, at).records, gone: manager.gone },
  });
}

/** As the registry does with a pod whose object is gone. */
export function forget(world: World, at: number, name: string, until: Pick<Gone, "untilMs" | "abroadUntilMs">): World {
  const manager = managerAt(world, at);
  const key = keyOf(name);
  const record = manager.records.get(key);
  const pod = world.proxies.find((proxy) => proxy.name === name);
  const gone = { pod: appPod(name, pod?.subset ?? ""), facts: record && factsOf(record) };
  const records = new Map(manager.records);
  records.delete(key);
  const next = withManager(world, at, { records, gone: [...manager.gone, { pod: gone, ...until }] });
  return record?.stream === undefined
    ? next
    : enterStream(next, record.stream, { kind: "end", status: "UNAVAILABLE", reason: "the pod is gone" });
}

function managerAt(world: World, at: number): ModelManager {
  const manager = world.managers[at];
  if (manager === undefined) throw new Error(`there is no manager ${at}`);
  return manager;
}

function recordOf(world: World, at: number, key: PodKey, stream: number): ProxyRecord<number> | undefined {
  const record = managerAt(world, at).records.get(key);
  return record?.stream === stream ? record : undefined;
}

function withRecord(world: World, at: number, key: PodKey, record: ProxyRecord<number>): World {
  return withManager(world, at, { records: new Map(managerAt(world, at).records).set(key, record) });
}
