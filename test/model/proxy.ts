// What a proxy of the model does: it carries out the effects of the shipping core, over a disk, writes and timers that are data.

import type { ManagerMessage, ProxyMessage, UpdateMessage } from "../../src/mesh/contract/messages.ts";
import { acceptsType } from "../../src/mesh/contract/resource-type.ts";
import { CLUSTER_OBJECTS, CLUSTER_REQUESTS, CLUSTER_SERVERS, ROUTE } from "../../src/mesh/contract/route-type.ts";
import { heldClaims } from "../../src/mesh/link/held-claims.ts";
import { afterSave, foundOnDisk, toSave, withNextNumber, withPromise } from "../../src/mesh/link/ledger.ts";
import { type DialogEffect, type DialogEvent, NEW_DIALOG, stepDialog } from "../../src/mesh/link/proxy-dialog.ts";
import { NO_ROUTES, type RoutesEffect, type RoutesEvent, stepRoutes } from "../../src/mesh/link/proxy-routes.ts";
import { readUpdate } from "../../src/mesh/link/read-update.ts";
import { greetingOf } from "../../src/mesh/link/registration.ts";
import { expectHeld, expectSameRules } from "./checks.ts";
import { enterStream } from "./manager.ts";
import { APP, isAbroad } from "./rules.ts";
import { asOld, intern, storedAsOld } from "./snapshots.ts";
import { proxyAt, type World, withProxy, withStream } from "./world.ts";
import { enforce, isDrained, leftByKill } from "./writes.ts";

const NONCES = 1_000;
const CAPABILITIES = [acceptsType(ROUTE.name), ROUTE.delta?.capability ?? "", CLUSTER_OBJECTS, CLUSTER_SERVERS];

/** The stream and the nonce of an update's number: an answer goes to the stream of its update. */
export function partsOf(update: number): readonly [stream: number, nonce: number] {
  return [Math.floor(update / NONCES), update % NONCES];
}

/** A proxy waits between streams. If its numbers were lost, it is late until the clock has passed the earlier ones. */
function wallMs({ nowMs, lastStream }: World): number {
  return nowMs + 1_000 * lastStream;
}

/** Opens a stream and registers. */
export function connect(before: World, at: number, manager: number): World {
  const proxy = proxyAt(before, at);
  const id = before.lastStream + 1;
  const promises = withNextNumber(proxy.promises, wallMs(before));
  const { registration } = greetingOf({
    pod: { namespace: APP.namespace, name: proxy.name, uid: `uid-${proxy.name}` },
    proxyVersion: "",
    capabilities: proxy.isOld ? CAPABILITIES : [...CAPABILITIES, CLUSTER_REQUESTS],
    streamNumber: promises.lastNumber,
    epoch: promises.epoch,
    version: proxy.routes.inForce?.version ?? 0,
    claims: heldClaims(proxy.routes, before.nowMs),
  });
  const stream = { id, proxy: at, manager, state: { kind: "registration-due" as const }, up: [], down: [] };
  const world = { ...before, lastStream: id, streams: [...before.streams, stream] };
  const opened = withProxy(world, at, { stream: id, promises, dialog: NEW_DIALOG });
  return say(promises.bound === proxy.promises.bound ? opened : savePromises(opened, at, "stored"), id, { registration });
}

function say(world: World, id: number, message: ProxyMessage | "end"): World {
  return withStream(world, id, ({ up }) => ({ up: [...up, message] }));
}

/** What the proxy has said before still arrives; what is on its way to it does not. */
export function hangUp(world: World, at: number): World {
  const { stream } = proxyAt(world, at);
  if (stream === undefined) return world;
  return withProxy(
    withStream(say(world, stream, "end"), stream, () => ({ down: [] })),
    at,
    { stream: undefined },
  );
}

/** Both sides notice, and nothing that is on its way arrives. */
export function cut(world: World, id: number): World {
  const stream = world.streams.find((each) => each.id === id);
  if (stream === undefined) return world;
  const next = enterStream(world, id, { kind: "closed" });
  const without = { ...next, streams: next.streams.filter((each) => each.id !== id) };
  return proxyAt(world, stream.proxy).stream === id ? withProxy(without, stream.proxy, { stream: undefined }) : without;
}

export function take(world: World, at: number, message: ManagerMessage | "end"): World {
  return message === "end" ? hangUp(world, at) : enterDialog(world, at, { kind: "message", message });
}

function enterDialog(world: World, at: number, event: DialogEvent): World {
  const { state, effects } = stepDialog(proxyAt(world, at).dialog, event);
  return effects.reduce((before, effect) => carryOutDialog(before, at, effect), withProxy(world, at, { dialog: state }));
}

function carryOutDialog(world: World, at: number, effect: DialogEffect): World {
  const { stream = 0, promises } = proxyAt(world, at);
  switch (effect.kind) {
    case "promise": {
      const next = withPromise(promises, effect.epoch);
      if (next === undefined) return enterDialog(world, at, { kind: "promised", epoch: effect.epoch, isGiven: false });
      return withProxy(world, at, { promises: next, promising: effect.epoch });
    }
    case "follow":
      return say(world, stream, { promise: { epoch: effect.welcome.epoch, tables: [] } });
    case "take":
      return takeUpdate(world, at, effect.update);
    case "close":
    case "refuse-epoch":
      return hangUp(world, at);
    default:
      return world;
  }
}

/** @param outcome refused: the disk is full, and has what the core says is left on it */
export function finishPromise(world: World, at: number, outcome: "stored" | "refused"): World {
  const { promising = 0 } = proxyAt(world, at);
  const saved = savePromises(withProxy(world, at, { promising: undefined }), at, outcome);
  const isGiven = proxyAt(saved, at).promises.epoch === promising;
  return enterDialog(saved, at, { kind: "promised", epoch: promising, isGiven });
}

function savePromises(world: World, at: number, outcome: "stored" | "refused"): World {
  const { promises, disk } = proxyAt(world, at);
  const save = toSave(promises);
  if (save === undefined) return world;
  const left = save.onFullDisk === "empty" ? "lost" : disk.promises;
  const onDisk = outcome === "stored" ? save.entry : left;
  return withProxy(world, at, { promises: afterSave(promises, save.entry, outcome), disk: { ...disk, promises: onDisk } });
}

function takeUpdate(world: World, at: number, update: UpdateMessage): World {
  const { routes, stream = 0, isOld } = proxyAt(world, at);
  const head = { type: ROUTE.name, nonce: update.nonce, version: update.resource?.version ?? 0 };
  const read = readUpdate(isOld ? asOld(update) : update, routes.inForce, APP.namespace);
  if (read.kind === "take")
    return enterRoutes(world, at, {
      kind: "update",
      update: stream * NONCES + update.nonce,
      routes: intern(read.routes),
      written: new Set(proxyAt(world, at).writes.flatMap(({ place }) => (isAbroad(place) ? [] : [place]))),
    });
  const needsWhole = read.kind === "needs-whole";
  return say(world, stream, { nack: { ...head, problems: needsWhole ? [] : read.problems, needsWhole } });
}

export function enterRoutes(world: World, at: number, event: RoutesEvent): World {
  const { state, effects } = stepRoutes(proxyAt(world, at).routes, event, world.nowMs);
  return effects.reduce((before, effect) => carryOutRoutes(before, at, effect), withProxy(world, at, { routes: state }));
}

function carryOutRoutes(world: World, at: number, effect: RoutesEffect): World {
  const { stream } = proxyAt(world, at);
  switch (effect.kind) {
    case "enforce":
      return enforce(world, at, effect.routes);
    case "relabel":
      expectSameRules(proxyAt(world, at), effect.routes, world.places);
      return withProxy(world, at, { enforced: effect.routes });
    case "drain":
      return lookAtWrites(withProxy(world, at, { isDraining: true }), at);
    case "settle":
      return enterAfter(world, at, effect.ms, { kind: "settled" });
    case "store":
      return withProxy(world, at, { saving: effect.routes });
    case "show-own-writes":
      return enterAfter(world, at, effect.ms, { kind: "own-writes-shown" });
    case "retry-later":
      return enterAfter(world, at, effect.ms, { kind: "retry" });
    case "acknowledge": {
      expectHeld(proxyAt(world, at));
      const [of, nonce] = partsOf(effect.update);
      return of === stream ? say(world, of, { ack: { type: ROUTE.name, nonce, version: 0 } }) : world;
    }
    default:
      return world; // the mark is for the moves, which the model leaves out
  }
}

function enterAfter(world: World, at: number, ms: number, event: RoutesEvent): World {
  const others = proxyAt(world, at).timers.filter((timer) => timer.event.kind !== event.kind);
  return withProxy(world, at, { timers: [...others, { atMs: world.nowMs + ms, event }] });
}

/** As the enforcers do whenever a write ends. */
export function lookAtWrites(world: World, at: number): World {
  if (!isDrained(proxyAt(world, at))) return world;
  return enterRoutes(withProxy(world, at, { isDraining: false }), at, { kind: "drained" });
}

export function endWrite(world: World, at: number, place: string): World {
  const writes = proxyAt(world, at).writes.filter((write) => write.place !== place);
  return lookAtWrites(withProxy(world, at, { writes }), at);
}

export type SaveOutcome = "stored" | "removed" | "failed";

/** @param outcome removed: the disk is full, so the old content was removed instead; failed: the old content stays */
export function finishSave(world: World, at: number, outcome: SaveOutcome): World {
  const { saving, disk } = proxyAt(world, at);
  const stored = { stored: saving, removed: undefined, failed: disk.stored }[outcome];
  const next = withProxy(world, at, { saving: undefined, disk: { ...disk, stored } });
  return enterRoutes(next, at, { kind: "stored", isStored: outcome !== "failed" });
}

/**
 * The process is killed and starts again.
 * @param isSaved the save under way had just been done
 * @param isOld of the next process; default: as before
 */
export function crash(before: World, at: number, isSaved: boolean, isOld = proxyAt(before, at).isOld): World {
  const world = hangUp(before, at);
  const { saving, disk } = proxyAt(world, at);
  const found = isSaved ? saving : disk.stored;
  const stored = found && isOld ? storedAsOld(found) : found;
  const promises = foundOnDisk(disk.promises, wallMs(world));
  const next = withProxy(world, at, {
    isOld,
    routes: NO_ROUTES,
    enforced: undefined,
    dialog: NEW_DIALOG,
    promises,
    promising: undefined,
    outlasts: promises.onDisk === undefined && (stored !== undefined || promises.hasPromised),
    disk: { ...disk, stored },
    saving: undefined,
    isDraining: false,
    writes: [],
    ghosts: leftByKill(world, at),
    timers: [],
  });
  const inheritsWrites = stored !== undefined || promises.hasPromised;
  const started = enterRoutes(next, at, { kind: "started", stored, inheritsWrites });
  return promises.onDisk === undefined ? started : savePromises(started, at, "stored");
}
