// Which callers a subset serves, by their user agent. Pure. Invariant: the default subset serves all callers,
// and a caller that another subset excludes gets nothing there, so a change of the list moves nothing between
// subsets.
import type { Snapshot } from "./snapshot.ts";
import { DEFAULT_SUBSET } from "./table.ts";

type CallerRules = Pick<Snapshot, "subset" | "callers">;

/** The entry of the list that excludes the user agent from the snapshot's subset; undefined if none does. */
export function excludedBy(snapshot: CallerRules, userAgent: string): string | undefined {
  const agents = defaultOnly(snapshot);
  return agents.length === 0 ? undefined : agents.find((pattern) => matchesAgent(pattern, userAgent));
}

/** False if one snapshot may serve a user agent and the other may not. */
export function servesAlike(before: CallerRules, now: CallerRules): boolean {
  const [old, next] = [defaultOnly(before), defaultOnly(now)];
  return old.length === next.length && old.every((pattern) => next.includes(pattern));
}

/** True if the pattern matches the whole user agent; `*` matches any characters, or none. */
export function matchesAgent(pattern: string, userAgent: string): boolean {
  const [head = "", ...rest] = pattern.split("*");
  const tail = rest.pop();
  if (tail === undefined) return pattern === userAgent;
  if (userAgent.length < head.length + tail.length || !userAgent.startsWith(head) || !userAgent.endsWith(tail)) return false;
  // Each part in between is taken where it first occurs: that leaves most room for the parts after it.
  let from = head.length;
  for (const part of rest) {
    const at = userAgent.indexOf(part, from);
    if (at < 0) return false;
    from = at + part.length;
  }
  return from <= userAgent.length - tail.length;
}

/** The patterns of the user agents that this subset does not serve. */
export function defaultOnly({ subset, callers }: CallerRules): readonly string[] {
  return subset === DEFAULT_SUBSET ? [] : callers.defaultOnlyUserAgents;
}
