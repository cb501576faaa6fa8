// What the manager knows about one proxy. The registry of proxies makes it; plan, status and restart read it.
import type { Snapshot } from "../../route/snapshot.ts";
import type { LockAccessMessage } from "../../wire/messages.ts";
import type { PodKey } from "./pod-key.ts";

/** What is known about one proxy. */
export interface ProxyFacts {
  readonly connected: boolean;
  /** What the proxy enforces: the newest snapshot that it acknowledged, or spoke of at registration. */
  readonly enforced: Snapshot | undefined;
  /** Sent and not yet answered: the proxy may enforce it any moment. */
  readonly outstanding: Snapshot | undefined;
  /** What it may have come to enforce after `enforced` without an ACK: what it said so at registration of, or what was undone before that. */
  readonly inDoubt: readonly Snapshot[];
  /** The proxy enforces something that it could not tell at registration; over with its first ACK. */
  readonly unresolved: boolean;
  /** The highest version that the proxy has spoken of. */
  readonly version: number;
  /** Why the proxy refused the newest snapshot; empty if it did not. */
  readonly problems: readonly string[];
  /** The pod holds the operator's lock. */
  readonly leader: boolean;
  /** Namespaces whose requests wait there for their owner to be told. */
  readonly held: number;
  /** Writes under way there that delay its acknowledgement. */
  readonly drainingWrites: number;
  /** What the API server said about the operator's use of its renamed lock; null while the proxy has not told. */
  readonly lock: LockAccessMessage | null;
}

/** What is known about the proxy of a pod; undefined if it has not registered to this manager. */
export type FactsOf = (pod: PodKey) => ProxyFacts | undefined;
