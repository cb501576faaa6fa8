// What the VirtualApp controller knows of pods beside their objects: see PodView.
import type { VirtualApp } from "../../api/virtual-app.ts";
import type { Store } from "../../runtime/store.ts";
import type { PodView } from "./app-pods.ts";
import type { OlderPods } from "./older-pods.ts";
import type { FactsOf, ProxyFacts } from "./proxy-facts.ts";

export interface PodViewSources {
  readonly apps: Pick<Store<VirtualApp>, "get">;
  readonly registry: { readonly facts: FactsOf };
  /** Default: the status of every pod is believed. */
  readonly older?: Pick<OlderPods, "has" | "wasListed">;
}

/** The view of the pods of one namespace. */
export function podViewIn(namespace: string, { apps, registry, older }: PodViewSources): PodView {
  return {
    isApp: (name) => apps.get(name, namespace) !== undefined,
    appsOf: (pod) => appsIn(registry.facts(pod)),
    isStatusLate: (pod) => older?.has(pod) ?? false,
    wasHereBefore: (pod) => older?.wasListed(pod) ?? false,
  };
}

/** The names of the apps whose routes a proxy may enforce; undefined if not all is known. A pod is told of apps of its namespace alone. */
export function appsIn(facts: ProxyFacts | undefined): readonly string[] | undefined {
  if (facts === undefined || facts.unresolved) return undefined;
  return [facts.enforced, ...facts.inDoubt, facts.outstanding].flatMap((snapshot) => snapshot?.app.name ?? []);
}
