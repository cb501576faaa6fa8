// A VirtualApp of the mesh's own operator in which each subset has one rule, for tests that choose their own subsets.
import { stringify } from "yaml";

export interface SubsetOptions {
  /** The labels that assign a pod to the subset. */
  readonly labels: Readonly<Record<string, string>>;
  /** The namespaces of the subset, as in `spec.route.subRules[].match[]`. */
  readonly match: { readonly namespaceRegex: string } | { readonly namespaceSelector: object };
}

/** YAML of the app. A subset's rule has the subset's name. */
export function appOfSubsets(subsets: Readonly<Record<string, SubsetOptions>>, { onLoss }: { onLoss?: "InPlace" } = {}): string {
  const all = Object.entries(subsets);
  const subRules = all.map(([name, { match }]) => ({ name, match: [match] }));
  return stringify({
    apiVersion: "ctrlmesh.kruise.io/v1alpha1",
    kind: "VirtualApp",
    metadata: { name: "foo-operator", namespace: "foo-system" },
    spec: {
      selector: { matchLabels: { component: "foo-operator" } },
      configuration: { controller: { leaderElectionName: "foo-operator" } },
      route: { ...(onLoss === undefined ? {} : { onLoss }), ...(all.length === 0 ? {} : { subRules }) },
      ...(all.length === 0 ? {} : { subsets: all.map(([name, { labels }]) => ({ name, labels, routeRules: [name] })) }),
    },
  });
}
