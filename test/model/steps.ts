// What can happen next in a world of the model, as data, and what becomes of the world then.
import { enterStream, forget, needsPlan, plan } from "./manager.ts";
import {
  beginWrite,
  connect,
  crash,
  cut,
  cutAbroad,
  endWrite,
  enterRoutes,
  finishPromise,
  finishSave,
  hangUp,
  lookAtWrites,
  proxyAt,
  type SaveOutcome,
  take,
} from "./proxy.ts";
import { allows, DRAIN_MS, isAbroad, WISHES } from "./rules.ts";
import {
  createManager,
  leaderOf,
  newestEpoch,
  type Stream,
  use,
  type World,
  withManager,
  withProxy,
  withStream,
} from "./world.ts";

export type Step =
  | { readonly kind: "wish"; readonly wish: number }
  | { readonly kind: "plan"; readonly manager: number }
  | { readonly kind: "connect"; readonly proxy: number; readonly manager: number }
  /** A manager takes the oldest message of a proxy, or a proxy that of a manager. */
  | { readonly kind: "up" | "down"; readonly stream: number }
  | { readonly kind: "saved"; readonly proxy: number; readonly outcome: SaveOutcome }
  | { readonly kind: "promise saved"; readonly proxy: number; readonly outcome: "stored" | "refused" }
  | { readonly kind: "write begins" | "write ends"; readonly proxy: number; readonly place: string }
  | { readonly kind: "time"; readonly toMs: number }
  // Faults.
  | { readonly kind: "crash"; readonly proxy: number; readonly isSaved: boolean }
  | { readonly kind: "hangs up"; readonly proxy: number }
  | { readonly kind: "cut"; readonly stream: number }
  | { readonly kind: "another leader" }
  /** Its lease was lost or deleted, and it has it again before it notices. */
  | { readonly kind: "leads again"; readonly manager: number }
  /** The lock gate closes or opens, which the file has to have too. */
  | { readonly kind: "gate changes"; readonly proxy: number }
  /** The manager takes a promise, and has no room for the tables that come with it. */
  | { readonly kind: "no room"; readonly stream: number }
  /** The older of two leaders notices that its lease is over. */
  | { readonly kind: "older ends" }
  | { readonly kind: "removed by force"; readonly proxy: number };

/** The steps that are possible now. */
export function stepsOf(world: World): Step[] {
  const { left, managers, proxies, streams } = world;
  const steps: Step[] = [];
  const mayFail = left.faults > 0;
  if (left.wishes > 0) for (const wish of WISHES.keys()) if (wish !== world.wish) steps.push({ kind: "wish", wish });
  for (const manager of managers.keys()) if (needsPlan(world, manager)) steps.push({ kind: "plan", manager });
  const leader = leaderOf(world);
  if (managers.some(({ leads }, at) => leads && at !== leader)) steps.push({ kind: "older ends" });
  if (mayFail && managers.length === 1) steps.push({ kind: "another leader" });
  if (mayFail) for (const [manager, { leads }] of managers.entries()) if (leads) steps.push({ kind: "leads again", manager });
  for (const { id, up, down, proxy } of streams) {
    if (mayFail && isPromise(up[0])) steps.push({ kind: "no room", stream: id });
    if (up.length > 0) steps.push({ kind: "up", stream: id });
    if (down.length > 0 && proxyAt(world, proxy).stream === id) steps.push({ kind: "down", stream: id });
    if (mayFail && proxyAt(world, proxy).stream === id) steps.push({ kind: "cut", stream: id });
  }
  for (const at of proxies.keys()) steps.push(...stepsOfProxy(world, at));
  const dueMs = nextTimeOf(world);
  if (dueMs !== undefined) steps.push({ kind: "time", toMs: dueMs });
  return steps;
}

const isPromise = (message: Stream["up"][number] | undefined) => typeof message === "object" && "promise" in message;

function stepsOfProxy(world: World, at: number): Step[] {
  const proxy = proxyAt(world, at);
  const { managers, left } = world;
  if (world.nowMs >= proxy.endsMs) return writeSteps(world, at).filter((step) => "place" in step && isAbroad(step.place));
  const steps: Step[] = [];
  const leader = leaderOf(world);
  const olderIsOver = managers.every(({ leads }, manager) => !leads || manager === leader);
  if (proxy.stream === undefined && (!proxy.outlasts || olderIsOver))
    for (const [manager, { leads }] of managers.entries()) if (leads) steps.push({ kind: "connect", proxy: at, manager });
  if (proxy.saving !== undefined) steps.push({ kind: "saved", proxy: at, outcome: "stored" });
  if (proxy.promising !== undefined) steps.push({ kind: "promise saved", proxy: at, outcome: "stored" });
  steps.push(...writeSteps(world, at));
  if (left.faults === 0) return steps;
  if (proxy.saving !== undefined)
    for (const outcome of ["removed", "failed"] as const) steps.push({ kind: "saved", proxy: at, outcome });
  steps.push({ kind: "crash", proxy: at, isSaved: false });
  if (proxy.saving !== undefined) steps.push({ kind: "crash", proxy: at, isSaved: true });
  if (proxy.stream !== undefined) steps.push({ kind: "hangs up", proxy: at });
  if (proxy.promising !== undefined) steps.push({ kind: "promise saved", proxy: at, outcome: "refused" });
  if (proxy.routes.inForce !== undefined) steps.push({ kind: "gate changes", proxy: at });
  if (proxy.isThere) steps.push({ kind: "removed by force", proxy: at });
  return steps;
}

function writeSteps(world: World, at: number): Step[] {
  const { writes, enforced, endsAbroadMs } = proxyAt(world, at);
  return world.places.flatMap((place): Step[] => {
    if (writes.some((write) => write.place === place)) return [{ kind: "write ends", proxy: at, place }];
    const mayBegin = world.left.writes > 0 && world.nowMs < endsAbroadMs && allows(enforced, place);
    return mayBegin ? [{ kind: "write begins", proxy: at, place }] : [];
  });
}

/** The next moment at which something happens by itself. */
function nextTimeOf({ nowMs, proxies, managers }: World): number | undefined {
  const times = [
    ...proxies.flatMap(({ timers, ghosts, endsMs, endsAbroadMs }) => [
      ...timers.map(({ atMs }) => atMs),
      ...ghosts.map(({ untilMs }) => untilMs),
      endsMs,
      endsAbroadMs,
    ]),
    ...managers.flatMap(({ gone }) => gone.flatMap(({ untilMs, abroadUntilMs }) => [untilMs, abroadUntilMs])),
  ].filter((ms) => ms > nowMs && ms < Number.POSITIVE_INFINITY);
  return times.length === 0 ? undefined : Math.min(...times);
}

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
    if (nowMs >= proxy.endsAbroadMs) next = cutAbroad(next, at, () => true);
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
