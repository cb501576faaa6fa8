// Lets the watches of a pod show one move together, so that an operator does not see half of a namespace: children are gained before the
// parents that own them, and lost after them. Invariant: nobody waits for longer than a second. Called by renewing-watch.ts.
import type { Clock, Timer } from "../../base/clock.ts";
import type { GroupResource } from "../../kube/types.ts";
import { isNamespaces } from "../../route/snapshot.ts";

export interface ReleaseOrder {
  /** A watch begins to ask for what has moved. Those that begin before the others have been released wait for each other. */
  enter(rank: number): Ticket;
}

export interface Ticket {
  /** Resolves when the watch may show what it has. @param bytes that it holds until then */
  ready(bytes: number): Promise<void>;
  /** Nobody waits for this watch any more. May be called twice. */
  leave(): void;
}

/** The slowest is not waited for any longer. */
const PATIENCE_MS = 1_000;
/** Between two ranks: the operator handles the events of its watches side by side. */
const GAP_MS = 20;
/** Of all watches that wait. More is shown at once. */
const MAX_BYTES = 32 * 1024 * 1024;

interface Group {
  readonly asking: Set<object>;
  readonly waiting: { readonly rank: number; readonly go: () => void }[];
  readonly timer: Timer;
  bytes: number;
  isReleased: boolean;
}

export function createReleaseOrder(clock: Clock): ReleaseOrder {
  let current: Group | undefined;

  const begin = (): Group => {
    const timer = clock.after(PATIENCE_MS, () => release(group));
    const group: Group = { asking: new Set(), waiting: [], timer, bytes: 0, isReleased: false };
    return group;
  };
  const release = (group: Group) => {
    if (group.isReleased) return;
    group.isReleased = true;
    group.timer.cancel();
    if (current === group) current = undefined;
    const ranks = [...Map.groupBy(group.waiting, ({ rank }) => rank)].sort(([a], [b]) => a - b);
    for (const [index, [, waiting]] of ranks.entries()) {
      const go = () => {
        for (const each of waiting) each.go();
      };
      if (index === 0) go();
      else clock.after(index * GAP_MS, go);
    }
  };

  return {
    enter(rank) {
      current ??= begin();
      const group = current;
      const ticket = {};
      group.asking.add(ticket);
      const leave = () => {
        if (group.asking.delete(ticket) && group.asking.size === 0) release(group);
      };
      return {
        leave,
        ready(bytes) {
          const { promise, resolve } = Promise.withResolvers<void>();
          if (group.isReleased) resolve();
          else group.waiting.push({ rank, go: resolve });
          group.bytes += bytes;
          leave();
          if (group.bytes > MAX_BYTES) release(group);
          return promise;
        },
      };
    },
  };
}

/** The built-in API groups: https://kubernetes.io/docs/reference/kubernetes-api/ */
const BUILT_IN = new Set(
  [
    ["", "apps", "autoscaling", "batch", "extensions", "policy"],
    [
      "admissionregistration",
      "apiextensions",
      "certificates",
      "coordination",
      "discovery",
      "events",
      "flowcontrol.apiserver",
    ].map((name) => `${name}.k8s.io`),
    ["networking", "node", "rbac.authorization", "resource", "scheduling", "storage"].map((name) => `${name}.k8s.io`),
  ].flat(),
);

/** The place of a resource when a namespace is gained: the namespace, what it holds of built-in kinds, custom resources. Reversed for a loss. */
export function rankOf(target: GroupResource, isGained: boolean): number {
  const rank = isNamespaces(target) ? 0 : BUILT_IN.has(target.group) ? 1 : 2;
  return isGained ? rank : 2 - rank;
}
