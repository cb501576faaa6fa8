// Everything that is decided about one app, from facts alone: its wished table, the fences, and what each subset's proxies
// are to enforce. Pure; the reconciler gathers the facts and carries the plan out.
import { lockNameOf, type VirtualAppSpec } from "../../api/virtual-app.ts";
import type { AppRef } from "../../route/snapshot.ts";
import type { RouteTable } from "../../route/table.ts";
import type { Claim } from "../handover/claims.ts";
import { planFences, type Wait, withFences } from "../handover/plan-fences.ts";
import { callersOf } from "./callers.ts";
import { compileRoute, type NamespaceFacts } from "./compile-route.ts";
import { digestOf, type Rules, rulesOf } from "./snapshots.ts";
import { subsetsOf } from "./subsets.ts";

export interface AppFacts {
  readonly app: AppRef;
  readonly spec: VirtualAppSpec;
  /** The VirtualApp's own. */
  readonly annotations?: Readonly<Record<string, string>>;
  readonly namespaces: Iterable<NamespaceFacts>;
  readonly claims: readonly Claim[];
}

export interface AppPlan {
  readonly wished: RouteTable;
  readonly subsets: readonly string[];
  /** What each subset's proxies enforce now, fences included. */
  readonly rules: ReadonlyMap<string, Rules>;
  /** Digest over all subsets' rules. */
  readonly digest: string;
  readonly waits: readonly Wait[];
}

export function planApp({ app, spec, annotations = {}, namespaces, claims }: AppFacts): AppPlan {
  const wished = compileRoute(spec, namespaces);
  const subsets = subsetsOf(spec);
  const callers = callersOf(spec, annotations);
  const fences = planFences(wished, subsets, claims);
  const rules = new Map(
    subsets.map((subset) => {
      const table = withFences(wished, fences, subset);
      return [subset, rulesOf({ app, subset, podNamespace: app.namespace, lockName: lockNameOf(spec), table, callers })];
    }),
  );
  return {
    wished,
    subsets,
    rules,
    digest: digestOf([...rules].map(([subset, { digest }]) => [subset, digest])),
    waits: fences.waits,
  };
}
