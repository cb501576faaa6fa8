// What can happen next in a world of the model, as data.
import { accessTo } from "./access.ts";
import { needsPlan } from "./manager.ts";
import type { SaveOutcome } from "./proxy.ts";
import { hasInside, isAbroad, wishesFor } from "./rules.ts";
import { leaderOf, proxyAt, type Stream, type World } from "./world.ts";

export type Step =
  | { readonly kind: "wish"; readonly wish: number }
  | { readonly kind: "pause"; readonly pause: World["pause"] }
  | { readonly kind: "namespaces known" }
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
  /** The same, with a proxy of the other version. */
  | { readonly kind: "other version"; readonly proxy: number }
  /** The connection of a write to a cluster breaks, whose API server may go on with it. */
  | { readonly kind: "write breaks"; readonly proxy: number; readonly place: string }
  /** The cluster is away, and the manager has forgotten its namespaces. */
  | { readonly kind: "namespaces unknown" }
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
  if (left.wishes > 0)
    for (const wish of wishesFor(world.places).keys()) if (wish !== world.wish) steps.push({ kind: "wish", wish });
  if (hasInside(world.places)) steps.push(...stepsInside(world));
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

const PAUSES: readonly World["pause"][] = ["none", "all", "percent"];

function stepsInside({ left, pause, knowsInside }: World): Step[] {
  const steps: Step[] = [];
  if (left.wishes > 0) for (const other of PAUSES) if (other !== pause) steps.push({ kind: "pause", pause: other });
  if (!knowsInside) steps.push({ kind: "namespaces known" });
  else if (left.faults > 0) steps.push({ kind: "namespaces unknown" });
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
  if (hasInside(world.places)) steps.push({ kind: "other version", proxy: at });
  for (const { place, way } of proxy.writes) if (way === "inside") steps.push({ kind: "write breaks", proxy: at, place });
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
    const mayBegin = world.left.writes > 0 && world.nowMs < endsAbroadMs && accessTo(enforced, place) !== undefined;
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
