// Which callers a subset serves: the answer to "may this user agent have anything here?". Pure. Invariant: a caller that is
// kept out of a subset owns nothing there, and nobody owns it in its stead; in the default subset everybody is served. So a
// change of the list moves nothing from one subset to another. Called by the proxy's caller layer.
import type { Snapshot } from "./snapshot.ts";
import { DEFAULT_SUBSET } from "./table.ts";

/** The entry of the list that keeps a user agent out of the snapshot's subset; undefined if it is served. */
export function excludedBy(snapshot: Snapshot, userAgent: string): string | undefined {
  const agents = defaultOnly(snapshot);
  return agents.length === 0 ? undefined : agents.find((pattern) => matchesAgent(pattern, userAgent));
}

/** False if a user agent may be served under one snapshot and not under the other. */
export function servesAlike(before: Snapshot, now: Snapshot): boolean {
  const [old, next] = [defaultOnly(before), defaultOnly(now)];
  return old.length === next.length && old.every((pattern) => next.includes(pattern));
}

/** True if the pattern is the whole user agent; `*` in it stands for any characters, also none. */
export function matchesAgent(pattern: string, userAgent: string): boolean {
  const [head = "", ...rest] = pattern.split("*");
  const tail = rest.pop();
  if (tail === undefined) return pattern === userAgent;
  if (userAgent.length < head.length + tail.length || !userAgent.startsWith(head) || !userAgent.endsWith(tail)) return false;
  // The parts in between, each at its first place: if that leaves no room, no other place would.
  let from = head.length;
  for (const part of rest) {
    const at = userAgent.indexOf(part, from);
    if (at < 0) return false;
    from = at + part.length;
  }
  return from <= userAgent.length - tail.length;
}

function defaultOnly({ subset, callers }: Snapshot): readonly string[] {
  return subset === DEFAULT_SUBSET ? [] : callers.defaultOnlyUserAgents;
}
