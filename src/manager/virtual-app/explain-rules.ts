// Which rules of a VirtualApp match a namespace, in the order in which they decide. Pure. Invariant: whether a rule matches is
// decided by the manager's own compiler. The words beside it only say what was compared.
import { RE2JS } from "re2js";
import type { LabelSelector } from "../../api/label-selector.ts";
import type { MatchLimitSelector } from "../../api/match-limit-selector.ts";
import type { VirtualAppSpec } from "../../api/virtual-app.ts";
import { formatTerms, type Labels, matchesTerms, termsOfSelector } from "../../kube/label-selector.ts";
import type { RouteRule } from "../../mesh/ownership/table.ts";
import type { ChosenClusters } from "../apps/chosen-clusters.ts";
import type { ClusterFacts, NamespaceFacts } from "../apps/compile/route-spec.ts";
import { type ClusterRule, clusterRulesOf, decidingRule, matchesCluster } from "./cluster-owners.ts";
import { routeOf } from "./route-rules.ts";

export interface RuleAnswer {
  /** As in the spec: "subRules[canary].match[0]"; "(no rule)" for what no rule gives to a subset. */
  readonly rule: string;
  /** Absent for a limit of the whole app. */
  readonly subset?: string | undefined;
  readonly match: "yes" | "no" | "not known" | "not reached" | "by object" | "by namespace";
  readonly why: string;
}

const REST = { rule: "(no rule)", subset: "default" };
const BY_DEFAULT = "the default subset has what no rule gives to another one";

/** The spec must be valid. */
export function explainRules(spec: VirtualAppSpec, namespace: NamespaceFacts): RuleAnswer[] {
  const route = routeOf(spec);
  const inside = new Set(route.membersOf(namespace, (expression, name) => RE2JS.compile(expression).matcher(name).find()));
  const terms = termsByOrigin(spec);
  const answers: RuleAnswer[] = [];
  let decided: string | undefined;
  for (const [at, rule] of route.rules.entries()) {
    const name = rule.origin.replace(/^spec\.route\./, "");
    const named = { rule: name, subset: "subset" in rule ? rule.subset : undefined };
    const why = comparedText(terms.get(rule.origin), namespace) + resourcesText(rule);
    if (rule.kind === "objects" || rule.kind === "object-limit") answers.push({ ...named, match: "by object", why });
    else if (decided !== undefined) answers.push({ ...named, match: "not reached", why: `${decided} has decided` });
    else {
      answers.push({ ...named, match: inside.has(at) ? "yes" : "no", why });
      if (rule.resources.length === 0 && inside.has(at) === (rule.kind === "subset")) decided = name;
    }
  }
  if (decided !== undefined) return [...answers, { ...REST, match: "not reached", why: `${decided} has decided` }];
  return [...answers, { ...REST, match: "yes", why: BY_DEFAULT }];
}

/** The same for another cluster; none if no rule names clusters. The spec must be valid. */
export function explainClusterRules(spec: VirtualAppSpec, cluster: ClusterFacts, chosen: ChosenClusters): RuleAnswer[] {
  const rules = clusterRulesOf(spec);
  const decided = decidingRule(rules, cluster, chosen);
  const decides = decided === undefined ? rules.length : rules.indexOf(decided.rule);
  const by = decided?.isMissing ? "the cluster keeps its owner" : `${decided?.rule.origin} has decided`;
  const answers = rules.map((rule, at): RuleAnswer => {
    const named = { rule: rule.origin, subset: rule.subset };
    if (at > decides) return { ...named, match: "not reached", why: by };
    const why = comparedCluster(rule, cluster, chosen);
    if (at === decides) return { ...named, match: decided?.isMissing ? "not known" : "yes", why };
    return { ...named, ...partialAnswer(rule, cluster, chosen, why) };
  });
  if (rules.length === 0) return [];
  const rest: Pick<RuleAnswer, "match" | "why"> =
    decided === undefined ? { match: "yes", why: BY_DEFAULT } : { match: "not reached", why: by };
  return [...answers, { ...REST, ...rest }];
}

function comparedCluster({ clusters, clusterSelector, decisionKey }: ClusterRule, cluster: ClusterFacts, chosen: ChosenClusters) {
  if (decisionKey !== undefined) return decisionText(decisionKey, cluster.name, chosen);
  if (clusterSelector !== undefined) return selectorText("clusterSelector", clusterSelector, cluster.labels);
  return `clusters ${clusters?.includes(cluster.name) ? "has" : "does not have"} ${cluster.name}`;
}

/** What a PlacementDecision says of a cluster. */
export function decisionText(key: string, cluster: string, chosen: ChosenClusters): string {
  const names = chosen.get(key);
  if (names === undefined) return `there is no PlacementDecision with the decision-key ${key}`;
  return `PlacementDecision ${key} ${names.has(cluster) ? "names" : "does not name"} ${cluster}`;
}

/** What a rule before the deciding one gives of the cluster: nothing, or namespaces and resources. */
function partialAnswer(
  rule: ClusterRule,
  cluster: ClusterFacts,
  chosen: ChosenClusters,
  why: string,
): Pick<RuleAnswer, "match" | "why"> {
  const match = rule.isPartial && matchesCluster(rule, cluster, chosen);
  if (match === false) return { match: "no", why };
  if (cluster.upstream === undefined)
    return { match: "no", why: `${why}, but the term is about namespaces: that needs interception: Terminate` };
  if (match === "unknown") return { match: "not known", why };
  return { match: "by namespace", why: `${why}; only for the namespaces and resources of the term` };
}

/** By the names that the compiler gives to the rules. */
function termsByOrigin({ route }: VirtualAppSpec): ReadonlyMap<string, MatchLimitSelector> {
  const limits = (route?.globalLimits ?? []).map((limit, at) => [`spec.route.globalLimits[${at}]`, limit] as const);
  const ofRules = (route?.subRules ?? []).flatMap(({ name, match }) =>
    match.map((term, at) => [`subRules[${name}].match[${at}]`, term] as const),
  );
  return new Map([...limits, ...ofRules]);
}

function comparedText(term: MatchLimitSelector | undefined, { name, labels }: NamespaceFacts): string {
  const { namespaceRegex, namespaceSelector, objectSelector } = term ?? {};
  if (namespaceRegex !== undefined) return `namespaceRegex ${namespaceRegex}, and the name is ${name}`;
  if (objectSelector !== undefined) return `objectSelector ${formatTerms(termsOfSelector(objectSelector))}`;
  return selectorText("namespaceSelector", namespaceSelector ?? {}, labels);
}

/** What a selector of labels compares. */
export function selectorText(field: string, selector: LabelSelector, labels: Labels): string {
  const terms = termsOfSelector(selector);
  const missed = terms.find((each) => !matchesTerms([each], labels));
  if (missed === undefined) return `${field} ${terms.length === 0 ? "{}" : formatTerms(terms)}, and the labels match`;
  return `${field} ${formatTerms([missed])}, and ${labelText(missed.key, labels)}`;
}

function labelText(key: string, labels: Labels): string {
  return Object.hasOwn(labels, key) ? `the label ${key} is ${labels[key] || '""'}` : `there is no label ${key}`;
}

function resourcesText({ resources }: RouteRule): string {
  return resources.length === 0 ? "" : "; only for the resources that the rule names";
}
