// Lets the watches of a pod show one move together, rank by rank, so that an operator does not see half of a
// namespace: children are gained before the parents that own them, and lost after them. Invariant: no watch
// waits for the others for longer than a second.
import type { Clock, Timer } from "../../base/clock.ts";
import type { GroupResource } from "../../kube/types.ts";
import { isNamespaces } from "../../mesh/ownership/snapshot.ts";

export interface ReleaseOrder {
  /** A watch begins to ask for what has moved. */
  enter(rank: number): Ticket;
}

export interface Ticket {
  /** Resolves when the watch may show what it has. @param bytes that it holds until then */
  ready(bytes: number): Promise<void>;
  /** From now on no other watch waits for this one. May be called twice. */
  leave(): void;
}

const PATIENCE_MS = 1_000;
/** The pause between two ranks. The operator reads its watches in parallel. */
const GAP_MS = 100;
/** Above this, watches that are ready do not wait for slower ones. */
const MAX_BYTES = 32 * 1024 * 1024;

interface Member {
  readonly rank: number;
  /** Lets the watch show what it has; undefined while it asks. */
  go: (() => void) | undefined;
}

export function createReleaseOrder(clock: Clock): ReleaseOrder {
  let current: ReleaseOrder | undefined;
  return {
    enter(rank) {
      if (current === undefined) {
        const group = createGroup(clock, () => {
          if (current === group) current = undefined;
        });
        current = group;
      }
      return current.enter(rank);
    },
  };
}

/** The watches that show the same moves. @param onClosed called when later watches belong to another group */
function createGroup(clock: Clock, onClosed: () => void): ReleaseOrder {
  const members = new Set<Member>();
  const patience = clock.after(PATIENCE_MS, waitNoLonger);
  let gap: Timer | undefined;
  let heldBytes = 0;
  let isImpatient = false;

  function waitNoLonger(): void {
    isImpatient = true;
    onClosed();
    advance();
  }

  // Lets the first rank go if all of it is ready, then the next one.
  function advance(): void {
    if (gap !== undefined) return;
    const counted = [...members].filter(({ go }) => go !== undefined || !isImpatient);
    const first = Math.min(...counted.map(({ rank }) => rank));
    const leaving = counted.filter(({ rank }) => rank === first);
    if (members.size === 0) {
      patience.cancel();
      onClosed();
    }
    if (leaving.length === 0 || leaving.some(({ go }) => go === undefined)) return;
    for (const member of leaving) {
      members.delete(member);
      member.go?.();
    }
    gap = clock.after(members.size === 0 ? 0 : GAP_MS, () => {
      gap = undefined;
      advance();
    });
  }

  return {
    enter(rank) {
      const member: Member = { rank, go: undefined };
      members.add(member);
      return {
        ready(bytes) {
          const { promise, resolve } = Promise.withResolvers<void>();
          members.add(member); // a watch that was released may ask again
          member.go = resolve;
          heldBytes += bytes;
          if (heldBytes > MAX_BYTES) waitNoLonger();
          else advance();
          return promise;
        },
        leave() {
          if (members.delete(member)) advance();
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

/** A gain shows the namespace, then its objects of built-in kinds, then the others; a loss the reverse. */
export function rankOf(target: GroupResource, isGained: boolean): number {
  const rank = rankOfGain(target);
  return isGained ? rank : 2 - rank;
}

function rankOfGain(target: GroupResource): number {
  if (isNamespaces(target)) return 0;
  return BUILT_IN.has(target.group) ? 1 : 2;
}
