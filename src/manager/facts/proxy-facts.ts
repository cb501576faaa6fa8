// What the manager knows about one proxy. The registry of proxies makes it; plan, status and restart read it.
import type { Snapshot } from "../../route/snapshot.ts";
import type { Reports } from "../../wire/messages.ts";
import type { PodKey } from "./pod-key.ts";

/** What is known about one proxy. */
export interface ProxyFacts extends Reports {
  readonly connected: boolean;
  /** The newest route that the proxy acknowledged, or named so in its registration. */
  readonly acknowledged: Snapshot | undefined;
  /** Sent and not yet answered: the proxy may enforce it any moment. */
  readonly outstanding: Snapshot | undefined;
  /** What it may have come to enforce after `acknowledged` without an ACK: by its registration, or because it was undone. */
  readonly inDoubt: readonly Snapshot[];
  /** The proxy may enforce anything besides; over with its first ACK. */
  readonly mayHoldMore: boolean;
  /** The highest version that the proxy has spoken of. */
  readonly version: number;
  /** By resource type: why the proxy does not enforce the newest resource. It refused the resource, or it does not support the type. */
  readonly problems: Readonly<Record<string, readonly string[]>>;
}

/** What is known about the proxy of a pod; undefined if it has not registered to this manager. */
export type FactsOf = (pod: PodKey) => ProxyFacts | undefined;
