// The facts that the manager knows about one proxy. The registry of proxies creates them. Plan, status and
// restart read them.
import type { Snapshot } from "../../route/snapshot.ts";
import type { Reports } from "../../wire/messages.ts";
import type { PodKey } from "./pod-key.ts";

/** The facts about one proxy. */
export interface ProxyFacts extends Reports {
  /** The resource types and features that the proxy supports. */
  readonly capabilities: ReadonlySet<string>;
  readonly connected: boolean;
  /** The newest route that the proxy acknowledged, or registered as acknowledged. */
  readonly acknowledged: Snapshot | undefined;
  /** Sent and not answered yet: the proxy may enforce it at any moment. */
  readonly outstanding: Snapshot | undefined;
  /**
   * Snapshots that the proxy may have enforced after `acknowledged` without an ACK: it registered them, or
   * they were undone.
   */
  readonly inDoubt: readonly Snapshot[];
  /** The proxy may also enforce any other snapshot. The first ACK ends this. */
  readonly mayHoldMore: boolean;
  /** The highest version that the proxy has registered or answered. */
  readonly version: number;
  /**
   * By resource type: why the proxy does not enforce the newest resource. Either it rejected the resource, or
   * it does not support the type.
   */
  readonly problems: Readonly<Record<string, readonly string[]>>;
}

/** The facts about the proxy of a pod; undefined if the proxy has not registered with this manager. */
export type FactsOf = (pod: PodKey) => ProxyFacts | undefined;
