// A text that is equal for worlds that go on alike, but for one thing: numbers of streams that a lost file brings nearer to each other. Versions, nonces and numbers of streams only matter by their order, and times by
// their distance from now, so that the worlds of a small model are finite in number.

import type { ManagerMessage, ProxyMessage, RegistrationMessage, ResourceMessage } from "../../src/mesh/contract/messages.ts";
import type { Delivery } from "../../src/mesh/link/delivery.ts";
import type { StreamState } from "../../src/mesh/link/manager-stream.ts";
import type { ProxyRecord } from "../../src/mesh/link/proxy-record.ts";
import { inheritedUntilMs } from "../../src/mesh/link/proxy-routes.ts";
import type { Snapshot } from "../../src/mesh/ownership/snapshot.ts";
import { needsPlan } from "./manager.ts";
import { partsOf } from "./proxy.ts";
import { hasInside } from "./rules.ts";
import type { ModelManager, ModelProxy, Stream, World, Write } from "./world.ts";

type Kind = "version" | "nonce" | "stream" | "number";
type Rank = (kind: Kind, value: number | undefined) => number | undefined;

export function fingerprint(world: World): string {
  const found: Record<Kind, Set<number>> = {
    version: new Set([0]),
    nonce: new Set([0]),
    stream: new Set([0]),
    number: new Set([0]),
  };
  write(world, (kind, value) => {
    if (value !== undefined) found[kind].add(value);
    return value;
  });
  const ranks = Object.fromEntries(
    Object.entries(found).map(([kind, values]) => [
      kind,
      new Map([...values].sort((a, b) => a - b).map((value, at) => [value, at])),
    ]),
  );
  return JSON.stringify(write(world, (kind, value) => (value === undefined ? undefined : ranks[kind]?.get(value))));
}

function write(world: World, rank: Rank): unknown {
  const fromNow = (ms: number) => (ms === Number.POSITIVE_INFINITY ? "never" : Math.max(0, ms - world.nowMs));
  return [
    world.wish,
    hasInside(world.places) ? [world.pause, world.knowsInside, world.ownersHashes] : [],
    world.left,
    rank("version", world.statusVersion),
    world.managers.map((manager, at) => [needsPlan(world, at), managerText(manager, rank, fromNow)]),
    world.proxies.map((proxy) => proxyText(proxy, rank, fromNow)),
    world.streams.map((stream) => streamText(stream, rank)),
  ];
}

const routesText = (routes: Snapshot | undefined, rank: Rank) => routes && [routes.digest, rank("version", routes.version)];
const resourceText = ({ digest, version }: ResourceMessage, rank: Rank) => [digest, rank("version", version)];

const retainedText = ({ table }: Snapshot) => table.retained?.flatMap(({ namespaces }) => [...namespaces]).sort();

function deliveryText({ desired, acknowledged, outstanding, inDoubt, ...rest }: Delivery<Snapshot>, rank: Rank): unknown {
  return [
    routesText(desired, rank),
    routesText(acknowledged, rank),
    outstanding && [
      routesText(outstanding.resource, rank),
      rank("nonce", outstanding.update?.nonce),
      outstanding.update?.baseDigest,
    ],
    inDoubt.map((each) => routesText(each, rank)),
    [rest.mayHoldMore, rank("version", rest.version), rest.refusedDigest, rank("nonce", rest.lastNonce)],
  ];
}

function recordText({ streamNumber, stream, route }: ProxyRecord<number>, rank: Rank): unknown {
  return [rank("number", streamNumber), rank("stream", stream), deliveryText(route, rank)];
}

function managerText(manager: ModelManager, rank: Rank, fromNow: (ms: number) => unknown): unknown {
  const { epoch, leads, knownEpoch, records, issue, gone } = manager;
  return [
    [epoch, leads, knownEpoch],
    [...records].map(([key, record]) => [key, recordText(record, rank)]).sort(),
    issue && [rank("version", issue.version), [...issue.snapshots.values()].map((each) => routesText(each, rank))],
    gone.map(({ pod, untilMs, abroadUntilMs }) => {
      const facts = pod === "unknown" ? undefined : pod.facts;
      const held = [facts?.acknowledged, facts?.outstanding, ...(facts?.inDoubt ?? [])].map((each) => routesText(each, rank));
      return [pod === "unknown" ? pod : pod.pod.name, facts?.mayHoldMore, held, fromNow(untilMs), fromNow(abroadUntilMs)];
    }),
  ];
}

function proxyText(proxy: ModelProxy, rank: Rank, fromNow: (ms: number) => unknown): unknown {
  const { routes, dialog, disk, promises } = proxy;
  const [dueStream, dueNonce] = routes.due === undefined ? [] : partsOf(routes.due);
  return [
    [proxy.isThere, fromNow(proxy.endsMs), fromNow(proxy.endsAbroadMs), proxy.outlasts, proxy.isDraining, proxy.isOld],
    [promises.epoch, promises.isStored, promises.hasPromised, promises.onDisk?.epoch, proxy.promising],
    typeof disk.promises === "object" ? disk.promises.epoch : disk.promises,
    [routesText(routes.inForce, rank), routesText(proxy.enforced, rank), routes.stage, routesText(routes.acknowledged, rank)],
    routes.inDoubt.map((each) => routesText(each, rank)),
    routes.retaining && [routes.retaining.isDrained, fromNow(routes.retaining.endMs), retainedText(routes.retaining.routes)],
    [fromNow(inheritedUntilMs(routes)), routes.file, rank("nonce", dueNonce), rank("stream", dueStream)],
    dialog.kind === "promising" ? [dialog.kind, dialog.welcome.epoch] : dialog.kind,
    [rank("stream", proxy.stream), rank("number", promises.lastNumber), rank("number", promises.bound)],
    [routesText(disk.stored, rank), routesText(proxy.saving, rank)],
    proxy.writes.map((each) => writeText(each, rank)),
    proxy.ghosts.map((ghost) => [writeText(ghost, rank), fromNow(ghost.untilMs), ghost.isKnown]),
    proxy.timers.map(({ atMs, event }) => [fromNow(atMs), event.kind]),
  ];
}

/** The version only matters where others may write under newer ones. */
function writeText({ place, routes, way, isOpen, sinceVersion }: Write, rank: Rank): unknown {
  return [place, routes.subset, way, isOpen, way === "home" ? undefined : rank("version", sinceVersion)];
}

function streamText({ id, proxy, manager, state, up, down }: Stream, rank: Rank): unknown {
  return [
    rank("stream", id),
    proxy,
    manager,
    stateText(state, rank),
    up.map((each) => upText(each, rank)),
    down.map((each) => downText(each, rank)),
  ];
}

function stateText(state: StreamState, rank: Rank): unknown {
  if (state.kind === "promise-due") return [state.kind, state.epoch, registrationText(state.registration, rank)];
  return [state.kind, state.kind === "served" ? state.epoch : undefined];
}

function registrationText({ streamNumber, epoch, route }: RegistrationMessage, rank: Rank): unknown {
  const claimed = [...(route?.acknowledged ? [route.acknowledged] : []), ...(route?.inDoubt ?? [])];
  const text = [rank("version", route?.version), route?.acknowledged === null, route?.mayHoldMore];
  return [rank("number", streamNumber), epoch, text, claimed.map((each) => resourceText(each, rank))];
}

function upText(message: ProxyMessage | "end", rank: Rank): unknown {
  if (message === "end") return message;
  if ("registration" in message) return registrationText(message.registration, rank);
  if ("promise" in message) return ["promise", message.promise.epoch];
  if ("ack" in message) return ["ack", rank("nonce", message.ack.nonce)];
  return "nack" in message ? ["nack", rank("nonce", message.nack.nonce), message.nack.needsWhole] : "report";
}

function downText(message: ManagerMessage | "end", rank: Rank): unknown {
  if (message === "end") return message;
  if ("welcome" in message) return ["welcome", message.welcome.epoch];
  if (!("update" in message)) return "redirect";
  const { nonce, resource, baseDigest } = message.update;
  return ["update", rank("nonce", nonce), resource && resourceText(resource, rank), baseDigest];
}
