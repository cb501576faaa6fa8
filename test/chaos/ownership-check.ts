// Checks exclusive ownership: reads the pods' writes from the API server's audit log and the owners over
// time, and finds objects that two subsets worked on. Pure; called by run-chaos.ts. There are two violations:
//
// - writes of two subsets in one place overlap in time, since a proxy forwarded one write before the other
//   had ended;
// - a subset writes after another subset, without a change of the rules in between that gave the place back.
//
// Refused writes count too, since a proxy forwarded them. A write that was carried out while the API server
// was killed is not in the log. The check may miss such a write, but it never reports a false violation.
import type { PodWrite } from "../support/mesh/pod-writes.ts";

/** The rules assign the place to this subset, from this time on at the earliest. */
export interface OwnerChange {
  readonly sinceMs: number;
  readonly subset: string;
}

export interface OwnershipCheck {
  readonly writes: readonly PodWrite[];
  /** The subset of a pod at a time; undefined if the pod belongs to another app. */
  subsetOf(pod: string, atMs: number): string | undefined;
  /**
   * The group of objects that moves together, as text; undefined: the write is not checked. The default is
   * resource and namespace.
   */
  placeOf?(write: PodWrite): string | undefined;
  /** The desired owners of the place, oldest first. The time of the first owner is ignored. */
  ownersOf(place: string): readonly OwnerChange[];
}

export type Violation =
  | { readonly kind: "overlap"; readonly place: string; readonly first: CheckedWrite; readonly second: CheckedWrite }
  | {
      readonly kind: "not-owner";
      readonly place: string;
      readonly write: CheckedWrite;
      readonly after: CheckedWrite | undefined;
    };

export interface CheckedWrite extends PodWrite {
  readonly subset: string;
}

export interface CheckResult {
  readonly violations: readonly Violation[];
  readonly checked: number;
  readonly places: number;
  /** Changes of the writing subset that the rules explain. */
  readonly handovers: number;
}

export function checkOwnership(check: OwnershipCheck): CheckResult {
  const { placeOf = resourceAndNamespace } = check;
  const places = new Map<string, CheckedWrite[]>();
  let checked = 0;
  for (const write of check.writes) {
    const place = placeOf(write);
    const subset = check.subsetOf(write.pod, write.receivedMs);
    if (place === undefined || subset === undefined) continue;
    checked++;
    const own = places.get(place) ?? [];
    own.push({ ...write, subset });
    places.set(place, own);
  }
  const violations: Violation[] = [];
  let handovers = 0;
  for (const [place, writes] of places) {
    writes.sort((a, b) => a.receivedMs - b.receivedMs);
    violations.push(...overlaps(place, writes));
    const followed = follow(place, writes, check.ownersOf(place));
    violations.push(...followed.violations);
    handovers += followed.handovers;
  }
  return { violations, checked, places: places.size, handovers };
}

function resourceAndNamespace({ resource, namespace }: PodWrite): string {
  return `${resource.split("/")[0]} in ${namespace}`;
}

/**
 * The writes that began during a write of another subset.
 * @param writes ordered by the time they were received
 */
function* overlaps(place: string, writes: readonly CheckedWrite[]): Iterable<Violation> {
  const lastOf = new Map<string, CheckedWrite>(); // for each subset, the write that ended last
  for (const write of writes) {
    for (const [subset, first] of lastOf) {
      if (subset !== write.subset && first.answeredMs > write.receivedMs) yield { kind: "overlap", place, first, second: write };
    }
    const last = lastOf.get(write.subset);
    if (last === undefined || last.answeredMs < write.answeredMs) lastOf.set(write.subset, write);
  }
}

// Each series of writes of one subset needs its own change of ownership, after the change of the previous
// series and not in the future. The earliest such change is taken, since it explains all writes that a later
// change explains.
function follow(
  place: string,
  writes: readonly CheckedWrite[],
  changes: readonly OwnerChange[],
): { violations: Violation[]; handovers: number } {
  const violations: Violation[] = [];
  let handovers = 0;
  let at = -1;
  let before: CheckedWrite | undefined;
  for (const write of writes) {
    if (before?.subset === write.subset) continue;
    const next = changes.findIndex(
      ({ subset, sinceMs }, index) => index > at && subset === write.subset && (index === 0 || sinceMs <= write.receivedMs),
    );
    if (next < 0) violations.push({ kind: "not-owner", place, write, after: before });
    else {
      at = next;
      if (before !== undefined) handovers++;
    }
    before = write;
  }
  return { violations, handovers };
}

/** A violation in words. */
export function violationText(violation: Violation): string {
  if (violation.kind === "overlap") {
    const { first, second, place } = violation;
    const byMs = (first.answeredMs - second.receivedMs).toFixed(3);
    return `${place}: ${text(second)} while ${text(first)} was under way, by ${byMs} ms`;
  }
  const after = violation.after === undefined ? "" : `, after ${text(violation.after)}`;
  return `${violation.place}: ${text(violation.write)} without a change of the rules that explains it${after}`;
}

function text({ pod, subset, verb, resource, namespace, name, code, receivedMs, answeredMs }: CheckedWrite): string {
  const time = (ms: number) => `${new Date(ms).toISOString().slice(11, 19)}.${((ms % 1000) / 1000).toFixed(6).slice(2)}`;
  return `${pod} of ${subset === "" ? "the default subset" : subset} (${verb} ${resource} ${namespace}/${name}: ${code}, ${time(receivedMs)} to ${time(answeredMs)})`;
}
