// The judge: from the pods' writes as the API server's audit log has them, and what the rules gave to whom since when, finds
// objects that were worked on by two subsets. Pure. Two things must never be:
//
// - writes of two subsets in one place whose times overlap: one was let through before the other was over;
// - a subset that writes again after another one did, with no change of the rules between that gave the place back to it.
//
// A write counts whatever the answer was: one that the API server refused was let through by a proxy all the same. The log knows
// nothing of a write that was carried out while the API server was killed: the judge may miss that one, and accuses nobody for it.
import type { PodWrite } from "../support/mesh/pod-writes.ts";

/** From this moment on (at the earliest) the rules give the place to this subset. */
export interface Wish {
  readonly sinceMs: number;
  readonly subset: string;
}

export interface Trial {
  readonly writes: readonly PodWrite[];
  /** The subset that a pod was in; undefined: the pod is no business of this app's. */
  subsetOf(pod: string, atMs: number): string | undefined;
  /** What moves together, as text; undefined: the write is not judged. Default: resource and namespace. */
  placeOf?(write: PodWrite): string | undefined;
  /** Who was to own the place, oldest first. The first one's time does not count. */
  wishesOf(place: string): readonly Wish[];
}

export type Fault =
  | { readonly kind: "overlap"; readonly place: string; readonly first: JudgedWrite; readonly second: JudgedWrite }
  | { readonly kind: "not-owner"; readonly place: string; readonly write: JudgedWrite; readonly after: JudgedWrite | undefined };

export interface JudgedWrite extends PodWrite {
  readonly subset: string;
}

export interface Verdict {
  readonly faults: readonly Fault[];
  readonly judged: number;
  readonly places: number;
  /** Changes of the writing subset that were found and explained. */
  readonly handovers: number;
}

export function judge(trial: Trial): Verdict {
  const { placeOf = resourceAndNamespace } = trial;
  const places = new Map<string, JudgedWrite[]>();
  let judged = 0;
  for (const write of trial.writes) {
    const place = placeOf(write);
    const subset = trial.subsetOf(write.pod, write.receivedMs);
    if (place === undefined || subset === undefined) continue;
    judged++;
    const own = places.get(place) ?? [];
    own.push({ ...write, subset });
    places.set(place, own);
  }
  const faults: Fault[] = [];
  let handovers = 0;
  for (const [place, writes] of places) {
    writes.sort((a, b) => a.receivedMs - b.receivedMs);
    faults.push(...overlaps(place, writes));
    const story = follow(place, writes, trial.wishesOf(place));
    faults.push(...story.faults);
    handovers += story.handovers;
  }
  return { faults, judged, places: places.size, handovers };
}

function resourceAndNamespace({ resource, namespace }: PodWrite): string {
  return `${resource.split("/")[0]} in ${namespace}`;
}

/** A write that came while one of another subset was under way. @param writes by the time that they were received */
function* overlaps(place: string, writes: readonly JudgedWrite[]): Iterable<Fault> {
  const lastOf = new Map<string, JudgedWrite>(); // of each subset the write that ended last
  for (const write of writes) {
    for (const [subset, first] of lastOf) {
      if (subset !== write.subset && first.answeredMs > write.receivedMs) yield { kind: "overlap", place, first, second: write };
    }
    const last = lastOf.get(write.subset);
    if (last === undefined || last.answeredMs < write.answeredMs) lastOf.set(write.subset, write);
  }
}

// Each run of writes of one subset must stand for a wish of its own, later in the order than that of the run before, and not from the
// future. The earliest such wish is taken: whatever comes later can be explained by it if by any.
function follow(place: string, writes: readonly JudgedWrite[], wishes: readonly Wish[]): { faults: Fault[]; handovers: number } {
  const faults: Fault[] = [];
  let handovers = 0;
  let at = -1;
  let before: JudgedWrite | undefined;
  for (const write of writes) {
    if (before?.subset === write.subset) continue;
    const next = wishes.findIndex(
      ({ subset, sinceMs }, index) => index > at && subset === write.subset && (index === 0 || sinceMs <= write.receivedMs),
    );
    if (next < 0) faults.push({ kind: "not-owner", place, write, after: before });
    else {
      at = next;
      if (before !== undefined) handovers++;
    }
    before = write;
  }
  return { faults, handovers };
}

/** A fault in words. */
export function faultText(fault: Fault): string {
  if (fault.kind === "overlap") {
    const { first, second, place } = fault;
    const byMs = (first.answeredMs - second.receivedMs).toFixed(3);
    return `${place}: ${text(second)} while ${text(first)} was under way, by ${byMs} ms`;
  }
  const after = fault.after === undefined ? "" : `, after ${text(fault.after)}`;
  return `${fault.place}: ${text(fault.write)} with no change of the rules that explains it${after}`;
}

function text({ pod, subset, verb, resource, namespace, name, code, receivedMs, answeredMs }: JudgedWrite): string {
  const time = (ms: number) => `${new Date(ms).toISOString().slice(11, 19)}.${((ms % 1000) / 1000).toFixed(6).slice(2)}`;
  return `${pod} of ${subset === "" ? "the default subset" : subset} (${verb} ${resource} ${namespace}/${name}: ${code}, ${time(receivedMs)} to ${time(answeredMs)})`;
}
