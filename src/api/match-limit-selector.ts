// A term in the rules of a VirtualApp: namespaces by labels or by name, objects by labels, or other clusters, with namespaces in
// them. Invariant: only namespaces are beside clusters; the CEL rules and the check here both enforce it.
import { optional, z } from "zod";
import type { Immutable } from "../base/json.ts";
import { clustersFromSchema } from "./clusters-from.ts";
import { celRules } from "./extensions.ts";
import { labelSelectorSchema } from "./label-selector.ts";
import { dnsSubdomainSchema } from "./names.ts";
import { MAX_REGEX_LENGTH, regexSchema, slowPart } from "./regex.ts";
import { resourceMatchSchema } from "./resource-match.ts";
import { type Finding, fieldsOf, itemsOf, withRules } from "./rule.ts";

const SELECTORS = [
  "namespaceSelector",
  "objectSelector",
  "namespaceRegex",
  "clusters",
  "clusterSelector",
  "clustersFrom",
] as const;
/** The selectors of other clusters. */
export const CLUSTER_SELECTORS = ["clusters", "clusterSelector", "clustersFrom"] as const;
const ONE_OF = `${SELECTORS.slice(0, -1).join(", ")} and ${SELECTORS.at(-1)}`;
const BESIDE_CLUSTERS =
  "at most one of clusters, clusterSelector and clustersFrom may be set, and beside it only resources and one of namespaceSelector and namespaceRegex";
/** Of each of these, one may be set at most. */
const ALTERNATIVES = [CLUSTER_SELECTORS, ["namespaceSelector", "namespaceRegex"]] as const;
const MAX_NAMED_CLUSTERS = 64;

export const matchLimitSelectorSchema = withRules(
  z
    .strictObject({
      namespaceSelector: optional(labelSelectorSchema).describe(
        "Matches namespaces by their labels. An empty selector matches every namespace.",
      ),
      objectSelector: optional(labelSelectorSchema).describe(
        "Matches objects of the listed resources by their own labels, in every namespace. The proxy adds it to the label selector of lists and watches. If a subset uses the rule, the selector must have exactly one term, and no rule of a subset may match these resources by namespace.",
      ),
      namespaceRegex: optional(withRules(regexSchema, slowProblems)).describe(
        "Matches namespaces by name: a regular expression in RE2 syntax, without word boundaries and without counted repetitions of what may be empty. It may match anywhere in the name, so anchor it with ^ and $.",
      ),
      clusters: optional(z.array(dnsSubdomainSchema).min(1).max(MAX_NAMED_CLUSTERS)).describe(
        "Matches other clusters by the names of their MeshClusters. Alone, the subset owns the clusters whole. In clusters with interception: Terminate, it owns only the namespaces that namespaceSelector or namespaceRegex beside this field matches, and only the resources listed; in other clusters such a term gives nothing. Not in globalLimits.",
      ),
      clusterSelector: optional(labelSelectorSchema).describe(
        "Matches other clusters by the labels of their MeshClusters, otherwise like clusters. An empty selector matches every MeshCluster of the namespace. Not in globalLimits.",
      ),
      clustersFrom: optional(clustersFromSchema).describe(
        "Matches other clusters that a PlacementDecision names. While there is no such PlacementDecision, a cluster that no earlier term matches keeps its owner; without one, it belongs to the default subset. Not in globalLimits.",
      ),
      resources: optional(z.array(resourceMatchSchema).max(32)).describe(
        "Resources that this term applies to. The default is all. Required with objectSelector.",
      ),
    })
    .meta(
      celRules(
        {
          rule: "has(self.clusters) || has(self.clusterSelector) || has(self.clustersFrom) || [has(self.namespaceSelector), has(self.objectSelector), has(self.namespaceRegex)].exists_one(x, x)",
          message: `exactly one of ${ONE_OF} must be set`,
        },
        {
          rule: "!has(self.objectSelector) || has(self.resources) && self.resources.size() > 0",
          message: "objectSelector needs resources, which list the kinds of the objects",
        },
        {
          rule: "[has(self.clusters), has(self.clusterSelector), has(self.clustersFrom)].all(x, !x) || [has(self.clusters), has(self.clusterSelector), has(self.clustersFrom)].exists_one(x, x) && !has(self.objectSelector) && !(has(self.namespaceSelector) && has(self.namespaceRegex))",
          message: BESIDE_CLUSTERS,
        },
      ),
    ),
  oneSelectorRule,
  objectResourcesRule,
);

export type MatchLimitSelector = Immutable<z.output<typeof matchLimitSelectorSchema>>;

/** True for a term about other clusters, which says nothing about the home cluster. The term may have any shape. */
export function namesClusters(term: unknown): boolean {
  const fields = fieldsOf(term);
  return CLUSTER_SELECTORS.some((name) => fields[name] !== undefined);
}

function* slowProblems(pattern: unknown): Iterable<Finding> {
  // The schema refuses a longer text.
  if (typeof pattern !== "string" || pattern.length > MAX_REGEX_LENGTH) return;
  const slow = slowPart(pattern);
  if (slow === undefined) return;
  const message = `has ${slow}, which is slow to match; use ^ and $ for the ends of a name, and * or + for a repetition`;
  yield { path: [], value: pattern, message };
}

function* oneSelectorRule(value: unknown): Iterable<Finding> {
  const fields = fieldsOf(value);
  const set = SELECTORS.filter((name) => fields[name] !== undefined);
  if (set.length === 1) return;
  if (namesClusters(value)) {
    const areTwo = ALTERNATIVES.some((names) => names.filter((name) => set.includes(name)).length > 1);
    const mayStand = !areTwo && !set.includes("objectSelector");
    if (!mayStand) yield { path: [], message: `${BESIDE_CLUSTERS}; ${set.join(" and ")} are set` };
    return;
  }
  // A misspelt selector is already refused as an unknown field.
  if (set.length === 0 && Object.keys(fields).some((name) => name !== "resources")) return;
  const found = set.length === 0 ? "none is set" : `${set.join(" and ")} are set`;
  yield { path: [], message: `exactly one of ${ONE_OF} must be set; ${found}` };
}

function* objectResourcesRule(value: unknown): Iterable<Finding> {
  const { objectSelector, resources } = fieldsOf(value);
  if (objectSelector !== undefined && itemsOf(resources).length === 0) {
    yield { path: ["resources"], message: "required: objectSelector needs resources, which list the kinds of the objects" };
  }
}
