// What becomes of a world of the model after a step.
import { enterStream, forget, plan } from "./manager.ts";
import { connect, crash, cut, endWrite, enterRoutes, finishPromise, finishSave, hangUp, lookAtWrites, take } from "./proxy.ts";
import { DRAIN_MS, isAbroad } from "./rules.ts";
import type { Step } from "./steps.ts";
import { createManager, leaderOf, newestEpoch, proxyAt, use, type World, withManager, withProxy, withStream } from "./world.ts";
import { beginWrite, cutTunnels } from "./writes.ts";

/** The API server accepts the token of a removed pod for 10 s, and carries out a write within 2 s. */
const TOKEN_MS = 12_000;
/** How long after the API server at home has accepted the token a proxy lets the pod write to other clusters. */
const PROOF_MS = 8_000;

/** When a pod that is removed now has ended, by the times of the design and not by those of the core. */
function endOf({ nowMs, places }: World) {
  const untilMs = nowMs + TOKEN_MS;
  return { untilMs, abroadUntilMs: places.some(isAbroad) ? untilMs + PROOF_MS + DRAIN_MS : untilMs };
}

export function perform(world: World, step: Step): World {
  switch (step.kind) {
    case "wish":
      return use({ ...world, wish: step.wish }, "wishes");
    case "pause":
      return use({ ...world, pause: step.pause }, "wishes");
    case "namespaces known":
      return { ...world, knowsInside: true };
    case "namespaces unknown":
      return use({ ...world, knowsInside: false }, "faults");
    case "write breaks":
      return cutTunnels(use(world, "faults"), step.proxy, ({ place }) => place === step.place);
    case "other version":
      return crash(use(world, "faults"), step.proxy, false, !proxyAt(world, step.proxy).isOld);
    case "plan":
      return plan(world, step.manager);
    case "connect":
      return connect(world, step.proxy, step.manager);
    case "up":
      return arriveUp(world, step.stream);
    case "down":
      return arriveDown(world, step.stream);
    case "saved":
      return finishSave(step.outcome === "stored" ? world : use(world, "faults"), step.proxy, step.outcome);
    case "write begins":
      return beginWrite(use(world, "writes"), step.proxy, step.place);
    case "write ends":
      return endWrite(world, step.proxy, step.place);
    case "time":
      return pass(world, step.toMs);
    case "crash":
      return crash(use(world, "faults"), step.proxy, step.isSaved);
    case "hangs up":
      return hangUp(use(world, "faults"), step.proxy);
    case "cut":
      return cut(use(world, "faults"), step.stream);
    case "promise saved":
      return finishPromise(step.outcome === "stored" ? world : use(world, "faults"), step.proxy, step.outcome);
    case "another leader": {
      const next = use(world, "faults");
      const gone = [{ pod: "unknown" as const, ...endOf(world) }];
      return { ...next, managers: [...next.managers, createManager(newestEpoch(next.managers) + 1, gone)] };
    }
    case "leads again":
      return withManager(use(world, "faults"), step.manager, { epoch: newestEpoch(world.managers) + 1 });
    case "gate changes":
      return enterRoutes(use(world, "faults"), step.proxy, { kind: "outdated" });
    case "no room":
      return arriveUp(use(world, "faults"), step.stream, false);
    case "older ends":
      return endOlder(world);
    case "removed by force":
      return remove(use(world, "faults"), step.proxy);
    default:
      return step satisfies never;
  }
}

/** A manager that leads no more ends its streams. */
function endOlder(world: World): World {
  const reason = "this replica leads no more";
  const leader = leaderOf(world);
  const ids = world.streams.filter(({ manager }) => manager !== leader).map(({ id }) => id);
  const managers = world.managers.map((manager, at) => (at === leader ? manager : { ...manager, leads: false }));
  const ended: World = { ...world, managers };
  return ids.reduce((before, id) => enterStream(before, id, { kind: "end", status: "UNAVAILABLE", reason }), ended);
}

function arriveUp(world: World, id: number, hasRoom = true): World {
  const stream = world.streams.find((each) => each.id === id);
  const message = stream?.up[0];
  if (stream === undefined || message === undefined) return world;
  const next = withStream(world, id, ({ up }) => ({ up: up.slice(1) }));
  if (message !== "end") return enterStream(next, id, { kind: "message", message }, hasRoom);
  const closed = enterStream(next, id, { kind: "closed" });
  return { ...closed, streams: closed.streams.filter((each) => each.id !== id) };
}

function arriveDown(world: World, id: number): World {
  const stream = world.streams.find((each) => each.id === id);
  const message = stream?.down[0];
  if (stream === undefined || message === undefined) return world;
  return take(
    withStream(world, id, ({ down }) => ({ down: down.slice(1) })),
    stream.proxy,
    message,
  );
}

/** Writes that were to end by then have ended when the timers of that moment fire. */
function pass(world: World, nowMs: number): World {
  let next: World = { ...world, nowMs };
  next = {
    ...next,
    managers: next.managers.map((each) => ({ ...each, gone: each.gone.filter(({ abroadUntilMs }) => abroadUntilMs > nowMs) })),
  };
  for (const [at, proxy] of world.proxies.entries()) {
    next = withProxy(next, at, { ghosts: proxy.ghosts.filter(({ untilMs }) => untilMs > nowMs) });
    if (nowMs >= proxy.endsAbroadMs) next = cutTunnels(next, at, () => true);
    if (nowMs >= proxy.endsMs) {
      if (proxy.stream !== undefined) next = cut(next, proxy.stream);
      continue;
    }
    next = lookAtWrites(next, at);
    const due = proxy.timers.filter(({ atMs }) => atMs <= nowMs);
    next = withProxy(next, at, { timers: proxy.timers.filter(({ atMs }) => atMs > nowMs) });
    for (const { event } of due) next = enterRoutes(next, at, event);
  }
  return next;
}

/** The process goes on for a while, as on a node that is cut off. */
function remove(world: World, at: number): World {
  const until = endOf(world);
  const endsMs = until.untilMs;
  let next = withProxy(world, at, { isThere: false, endsMs, endsAbroadMs: endsMs + PROOF_MS });
  for (const manager of world.managers.keys()) next = forget(next, manager, proxyAt(world, at).name, until);
  return next;
}
