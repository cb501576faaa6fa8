// What is known of the pods of one namespace beside their objects: see PodView. Called by the controllers of apps.
import type { Apps } from "../sources/apps.ts";
import type { PodView } from "./app-pods.ts";
import type { PastOfPods } from "./pod-history.ts";
import type { FactsOf, ProxyFacts } from "./proxy-facts.ts";

export interface PodViewSources {
  /** Of all source kinds. */
  readonly apps: Pick<Apps, "get">;
  readonly factsOf: FactsOf;
  readonly past: Pick<PastOfPods, "isStatusLate" | "wasHereBefore">;
}

export function podViewIn(namespace: string, { apps, factsOf, past }: PodViewSources): PodView {
  return {
    isApp: (name) => apps.get(name, namespace) !== undefined,
    appsOf: (pod) => appsIn(factsOf(pod)),
    isStatusLate: past.isStatusLate,
    wasHereBefore: past.wasHereBefore,
  };
}

/** The names of the apps whose routes a proxy may enforce; undefined if not all is known. A proxy has routes of its own namespace alone. */
export function appsIn(facts: ProxyFacts | undefined): readonly string[] | undefined {
  if (facts === undefined || facts.unresolved) return undefined;
  return [facts.acknowledged, ...facts.inDoubt, facts.outstanding].flatMap((snapshot) => snapshot?.app.name ?? []);
}
