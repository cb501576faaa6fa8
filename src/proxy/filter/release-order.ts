// Lets the watches of a pod show one move together, so that an operator does not see half of a namespace:
// children are gained before the parents that own them, and lost after them. Watches are released by rank
// (`rankOf`): when all watches of the rank are ready and all lower ranks are released. Invariant: no watch
// waits for the others for longer than a second.
import type { Clock, Timer } from "../../base/clock.ts";
import type { GroupResource } from "../../kube/types.ts";
import { isNamespaces } from "../../route/snapshot.ts";

export interface ReleaseOrder {
  /** A watch begins to ask for what has moved. */
  enter(rank: number): Ticket;
}

export interface Ticket {
  /** Resolves when the watch may show what it has. @param bytes that it holds until then */
  ready(bytes: number): Promise<void>;
  /** Nobody waits for this watch any more. May be called twice. */
  leave(): void;
}

/** The longest time that watches wait for the slowest one. */
const PATIENCE_MS = 1_000;
/**
 * The pause between two ranks. The operator reads its watches in parallel, so without a pause it could handle
 * the later rank first.
 */
const GAP_MS = 100;
/** Bound of what all waiting watches hold. Above it, watches that are ready do not wait for slower ones. */
const MAX_BYTES = 32 * 1024 * 1024;

interface Member {
  readonly rank: number;
  /** Lets the watch show what it has; undefined while it asks. */
  go: (() => void) | undefined;
}

/** The watches that show the same moves. */
class Group {
  readonly #clock: Clock;
  readonly #members = new Set<Member>();
  readonly #patience: Timer;
  readonly #onClosed: () => void;
  #gap: Timer | undefined;
  #bytes = 0;
  #isImpatient = false;

  constructor(clock: Clock, onClosed: () => void) {
    this.#clock = clock;
    this.#onClosed = onClosed;
    this.#patience = clock.after(PATIENCE_MS, () => this.#waitNoLonger());
  }

  enter(rank: number): Ticket {
    const member: Member = { rank, go: undefined };
    this.#members.add(member);
    return {
      ready: (bytes) => {
        const { promise, resolve } = Promise.withResolvers<void>();
        // A watch that was released may ask again, and is then a member again.
        this.#members.add(member);
        member.go = resolve;
        this.#bytes += bytes;
        if (this.#bytes > MAX_BYTES) this.#waitNoLonger();
        else this.#advance();
        return promise;
      },
      leave: () => {
        if (this.#members.delete(member)) this.#advance();
      },
    };
  }

  #waitNoLonger(): void {
    this.#isImpatient = true;
    this.#onClosed();
    this.#advance();
  }

  // Lets the first rank go if all of it is ready, then the next one.
  #advance(): void {
    if (this.#gap !== undefined) return;
    const counted = [...this.#members].filter(({ go }) => go !== undefined || !this.#isImpatient);
    const first = Math.min(...counted.map(({ rank }) => rank));
    const leaving = counted.filter(({ rank }) => rank === first);
    if (this.#members.size === 0) {
      this.#patience.cancel();
      this.#onClosed();
    }
    if (leaving.length === 0 || leaving.some(({ go }) => go === undefined)) return;
    for (const member of leaving) {
      this.#members.delete(member);
      member.go?.();
    }
    this.#gap = this.#clock.after(this.#members.size === 0 ? 0 : GAP_MS, () => {
      this.#gap = undefined;
      this.#advance();
    });
  }
}

export function createReleaseOrder(clock: Clock): ReleaseOrder {
  let current: Group | undefined;
  return {
    enter(rank) {
      if (current === undefined) {
        const group: Group = new Group(clock, () => {
          if (current === group) current = undefined;
        });
        current = group;
      }
      return current.enter(rank);
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

/**
 * The place of a resource when a namespace is gained: the namespace, what it holds of built-in kinds, custom
 * resources. Reversed for a loss.
 */
export function rankOf(target: GroupResource, isGained: boolean): number {
  const rank = rankOfGain(target);
  return isGained ? rank : 2 - rank;
}

function rankOfGain(target: GroupResource): number {
  if (isNamespaces(target)) return 0;
  return BUILT_IN.has(target.group) ? 1 : 2;
}
