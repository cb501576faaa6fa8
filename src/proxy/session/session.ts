// What the other parts of the proxy need of the session. Invariant: a snapshot is enforced from the moment
// `current` changes; it is acknowledged only after every write that it no longer allows has finished.
import type { Runnable } from "../../base/lifecycle.ts";
import { StatusError } from "../../kube/status.ts";
import type { GroupResource } from "../../kube/types.ts";
import type { Reports } from "../../mesh/contract/messages.ts";
import type { MovesMemory } from "../../mesh/moves/stored-moves.ts";
import type { WriteReach } from "../../mesh/ownership/decide.ts";
import type { Enforced, EnforcedRoutes } from "../../mesh/ownership/enforced.ts";
import type { Policies } from "../policies/policies.ts";
import type { LockMemory } from "./memory.ts";
import type { Peers } from "./peers-handler.ts";

/** What a write is for; the name is "" if it is not known, or for many objects. */
export interface WriteTarget extends GroupResource {
  readonly namespace?: string;
  readonly name?: string;
}

/** `current` is undefined while no traffic is served. */
export interface Session extends EnforcedRoutes {
  /**
   * Counts a write in a namespace as in flight until the returned function is called (calling it again does
   * nothing). Until then a snapshot that takes `target` in this namespace away from the subset is not
   * acknowledged; without a target, one that takes any resource in it away.
   * @param reach what the write reaches, if more than that namespace: the same holds for all of it
   */
  beginWrite(namespace: string, target?: WriteTarget, reach?: WriteReach): () => void;
  /** Counts a watch as renewing itself until the returned function is called. */
  beginRenewal(): () => void;
  /** Counts a request or watch as waiting for a namespace's owner until the returned function is called. */
  beginHold(namespace: string): () => void;
}

export interface ClusterSession extends EnforcedRoutes {
  /**
   * Counts a connection to a server (host:port) of a divided cluster as in flight until the returned function is called. Until
   * then a snapshot that takes the server away from the subset is not acknowledged.
   */
  beginEgress(server: string): () => void;
}

/** @throws StatusError ServiceUnavailable without a snapshot */
export function enforcedNow({ current }: Pick<Session, "current">): Enforced {
  if (current === undefined)
    throw new StatusError("ServiceUnavailable", "ctrlmesh: this proxy has no routes yet", { retryAfterSeconds: 1 });
  return current;
}

/** Tells the manager the last value of one kind of report. Equal values are ignored. */
export type Report = <K extends keyof Reports>(kind: K, value: Reports[K]) => void;

export interface ManagerSession extends Session, ClusterSession, Runnable {
  /** The routes inside another cluster. `current` is undefined while they have no table for it. */
  inside(cluster: string): Session;
  readonly policies: Policies;
  readonly peers: Peers;
  readonly report: Report;
  readonly memory: { readonly lock: LockMemory; readonly moves: MovesMemory };
  /** What has to come before the proxy serves; undefined if it serves. */
  readonly awaited: "snapshot" | "policies" | undefined;
  /** Why the manager cannot be asked or refuses this pod, in words for a user; undefined if unknown. */
  readonly trouble: string | undefined;
}
