// The facts that the manager knows about one proxy, by the key of its pod. The registry of proxies creates
// them.

import type { Reports } from "../contract/messages.ts";
import type { Snapshot } from "../ownership/snapshot.ts";

/** "namespace/name" of a pod. */
export type PodKey = `${string}/${string}`;

export function podKey({ namespace, name }: { readonly namespace: string; readonly name: string }): PodKey {
  return `${namespace}/${name}`;
}

export interface ProxyFacts extends Reports {
  /** The resource types and features that the proxy supports. */
  readonly capabilities: ReadonlySet<string>;
  readonly connected: boolean;
  /** The newest route that the proxy acknowledged, or registered as acknowledged. */
  readonly acknowledged: Snapshot | undefined;
  /** Sent and not answered yet, so the proxy may enforce it at any moment. */
  readonly outstanding: Snapshot | undefined;
  /** What the proxy may have enforced after `acknowledged` without an ACK: it was registered, or undone. */
  readonly inDoubt: readonly Snapshot[];
  /** The proxy may also enforce any other snapshot. The first ACK ends this. */
  readonly mayHoldMore: boolean;
  /** The highest version that the proxy has registered or answered. */
  readonly version: number;
  /** For each resource type why the proxy does not enforce the newest resource, or does not support the type. */
  readonly problems: Readonly<Record<string, readonly string[]>>;
}

export function snapshotsIn({ acknowledged, inDoubt, outstanding }: ProxyFacts): Snapshot[] {
  return [acknowledged, ...inDoubt, outstanding].filter((snapshot) => snapshot !== undefined);
}

/** The facts about the proxy of a pod; undefined if the proxy has not registered with this manager. */
export type FactsOf = (pod: PodKey) => ProxyFacts | undefined;
