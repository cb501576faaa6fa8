// The rules over several fields of a VirtualApp's spec. Invariant: the cost is linear in the spec, and a spec
// above the bounds is refused first. The rules also run on specs with other problems (see rule.ts).
import { jsonText } from "../base/json.ts";
import type { CelRule } from "./extensions.ts";
import { recreateAdvice } from "./kind.ts";
import { countTerms } from "./label-selector.ts";
import { CLUSTER_SELECTORS, namesClusters } from "./match-limit-selector.ts";
import { MAX_NAME_LENGTH, SUBSET_SEPARATOR } from "./names.ts";
import { didYouMean } from "./nearest.ts";
import { boundedRegexes } from "./regex.ts";
import { boundedResourcePairs, createResourceIndex } from "./resource-match.ts";
import { type Finding, fieldAt, itemsOf, type Path, specPath, stringsOf, uniqueNames } from "./rule.ts";

export const RECREATE_ADVICE = recreateAdvice("VirtualApp");

// The name of the operator's lock, from either field; "" if there is none.
const lockIn = (spec: string) =>
  `${spec}.?configuration.?controller.?leaderElectionName.or(${spec}.?configuration.?controller.?leaderElection.?lockName).orValue("")`;

/** The API server checks these itself, even without the webhook. Their messages name no nearest match. */
export const SPEC_CEL_RULES: readonly CelRule[] = [
  {
    rule: "!has(self.subsets) || self.subsets.all(s, s.routeRules.all(r, has(self.route) && has(self.route.subRules) && self.route.subRules.exists(x, x.name == r)))",
    message: "every entry of routeRules must be the name of one of spec.route.subRules",
    fieldPath: ".subsets",
  },
  {
    rule: "!has(self.subsets) || !has(self.route) || !has(self.route.subRules) || self.route.subRules.all(x, self.subsets.filter(s, x.name in s.routeRules).size() <= 1)",
    message: "a subRule can belong to one subset only",
    fieldPath: ".subsets",
  },
  {
    rule: `!has(self.subsets) || ${lockIn("self")} == "" || self.subsets.all(s, ${lockIn("self")}.size() + ${SUBSET_SEPARATOR.length} + s.name.size() <= ${MAX_NAME_LENGTH})`,
    message: `the lock of a subset, NAME${SUBSET_SEPARATOR}SUBSET, must not be longer than ${MAX_NAME_LENGTH} characters`,
    fieldPath: ".configuration",
  },
  {
    // Running pods would keep the old name while new pods use the new one. The name may move to the other
    // field, and may be set for the first time.
    rule: `${lockIn("oldSelf")} in ["", ${lockIn("self")}]`,
    message: `the name of the operator's lock cannot be changed once it is set: ${RECREATE_ADVICE}`,
  },
];

export function* specRules(spec: unknown): Iterable<Finding> {
  yield* boundedWork(spec);
  yield* uniqueNames(spec, ["route", "subRules"]);
  yield* uniqueNames(spec, ["subsets"]);
  yield* ruleReferences(spec);
  yield* lockForms(spec);
  yield* lockLengths(spec);
  yield* negatableSelectors(spec);
  yield* mixedPartitions(spec);
  yield* limitedClusters(spec);
}

function* limitedClusters(spec: unknown): Iterable<Finding> {
  for (const [index, limit] of itemsOf(fieldAt(spec, "route", "globalLimits")).entries()) {
    for (const field of CLUSTER_SELECTORS) {
      if (fieldAt(limit, field) === undefined) continue;
      yield {
        path: ["route", "globalLimits", index, field],
        message: "limits are about namespaces and objects: name clusters in spec.route.subRules",
      };
    }
  }
}

function* ruleReferences(spec: unknown): Iterable<Finding> {
  const known = itemsOf(fieldAt(spec, "route", "subRules")).flatMap((item) => stringsOf([fieldAt(item, "name")]));
  const used = new Map<string, Path>();
  for (const [subset, item] of itemsOf(fieldAt(spec, "subsets")).entries()) {
    for (const [index, name] of itemsOf(fieldAt(item, "routeRules")).entries()) {
      if (typeof name !== "string" || name === "") continue;
      const path: Path = ["subsets", subset, "routeRules", index];
      const earlier = used.get(name);
      if (!known.includes(name)) yield { path, value: name, message: `no such subRule${suggestion(name, known)}` };
      else if (earlier !== undefined) yield { path, value: name, message: usedTwice(earlier, subset) };
      if (earlier === undefined) used.set(name, path);
    }
  }
}

const MAX_LISTED = 5;

function suggestion(name: string, known: readonly string[]): string {
  if (known.length === 0) return "; spec.route.subRules is empty";
  const listed = known.slice(0, MAX_LISTED).map(quote);
  return didYouMean(name, known) || `; the names are ${listed.join(", ")}${known.length > MAX_LISTED ? " and others" : ""}`;
}

function usedTwice(earlier: Path, subset: number): string {
  if (earlier[1] === subset) return `is already listed in this subset, at ${specPath(earlier)}`;
  return `already belongs to another subset, at ${specPath(earlier)}; a subRule can belong to one subset only`;
}

const LOCK_FORMS = [["leaderElectionName"], ["leaderElection", "lockName"]] as const;

function locksOf(spec: unknown): { path: Path; name: string }[] {
  return LOCK_FORMS.flatMap((form) => {
    const path = ["configuration", "controller", ...form];
    const name = fieldAt(spec, ...path);
    return typeof name === "string" ? [{ path, name }] : [];
  });
}

function* lockForms(spec: unknown): Iterable<Finding> {
  const [newer, older] = locksOf(spec);
  if (newer === undefined || older === undefined || newer.name === older.name) return;
  const message = `differs from ${specPath(newer.path)} ${quote(newer.name)}; both name the same lock, so set one of them`;
  yield { path: older.path, value: older.name, message };
}

function* lockLengths(spec: unknown): Iterable<Finding> {
  const lock = locksOf(spec)[0];
  const subsets = itemsOf(fieldAt(spec, "subsets")).flatMap((item) => stringsOf([fieldAt(item, "name")]));
  const longest = subsets.toSorted((a, b) => b.length - a.length)[0];
  if (lock === undefined || longest === undefined) return;
  const length = lock.name.length + SUBSET_SEPARATOR.length + longest.length;
  if (length <= MAX_NAME_LENGTH) return;
  const room = MAX_NAME_LENGTH - SUBSET_SEPARATOR.length - longest.length;
  const message = `too long: the lock of subset ${quote(longest)} would have a name of ${length} characters; at most ${MAX_NAME_LENGTH} are allowed, so use at most ${room} here`;
  yield { path: lock.path, value: lock.name, message };
}

/** The default subset sees what no other subset selects, and only a single term has a negation. */
function* negatableSelectors(spec: unknown): Iterable<Finding> {
  for (const { subset, matches } of matchesBySubset(spec)) {
    const name = quote(jsonText(fieldAt(subset, "name") ?? ""));
    const earlier = createResourceIndex<Path>();
    for (const { path, terms, resources } of objectRulesOf(matches)) {
      const why = `subset ${name} uses it, so the default subset must select the opposite`;
      if (terms !== 1)
        yield { path, message: `must have exactly one term, has ${terms}: ${why}, and only a single term has an opposite` };
      const other = earlier.firstOverlap(resources);
      earlier.add(resources, path);
      if (other === undefined) continue;
      const message = `selects among the same resources as ${specPath(other)}: ${why} of both together, and no selector can express that`;
      yield { path, message };
    }
  }
}

// A resource is assigned by namespace or partitioned by label. With both, no single label selector could
// express what a subset owns, and an object that leaves the subset would look like one that was never in it.
function* mixedPartitions(spec: unknown): Iterable<Finding> {
  const used = matchesBySubset(spec).flatMap(({ matches }) => matches);
  const byNamespaces = createResourceIndex<Match & { readonly isForAll: boolean }>();
  for (const each of used) {
    if (!isByNamespaces(each.match)) continue;
    const resources = itemsOf(fieldAt(each.match, "resources"));
    const isForAll = resources.length === 0;
    byNamespaces.add(isForAll ? EVERYTHING : resources, { ...each, isForAll });
  }
  for (const { path, resources } of objectRulesOf(used)) {
    const other = byNamespaces.firstOverlap(resources);
    if (other === undefined) continue;
    const advice = other.isForAll
      ? "that term lists no resources, so it applies to all: list its resources"
      : "remove the common resources from one of the terms";
    yield { path, message: `partitions by label a resource that ${specPath(other.path)} assigns by namespace; ${advice}` };
  }
}

const EVERYTHING = [{ apiGroups: ["*"], resources: ["*"] }];

/** At home. */
function isByNamespaces(match: unknown): boolean {
  if (namesClusters(match)) return false;
  return fieldAt(match, "namespaceSelector") !== undefined || fieldAt(match, "namespaceRegex") !== undefined;
}

/** The objectSelectors, with the resources that they apply to. */
function objectRulesOf(matches: readonly Match[]) {
  return matches.flatMap(({ path, match }) => {
    const selector = fieldAt(match, "objectSelector");
    if (selector === undefined) return [];
    return { path: [...path, "objectSelector"], terms: countTerms(selector), resources: itemsOf(fieldAt(match, "resources")) };
  });
}

/** A term of a subRule. */
interface Match {
  readonly path: Path;
  readonly match: unknown;
}

/** The terms of each subset. A rule counts for its first subset: `ruleReferences` refuses a second use. */
function matchesBySubset(spec: unknown): { readonly subset: unknown; readonly matches: readonly Match[] }[] {
  const rules = Map.groupBy(itemsOf(fieldAt(spec, "route", "subRules")).entries(), ([, rule]) => fieldAt(rule, "name"));
  return itemsOf(fieldAt(spec, "subsets")).map((subset) => {
    const own = stringsOf(fieldAt(subset, "routeRules")).flatMap((name) => {
      const named = rules.get(name) ?? [];
      rules.delete(name);
      return named;
    });
    return { subset, matches: own.flatMap(([index, rule]) => matchesOf(rule, index)) };
  });
}

function matchesOf(rule: unknown, index: number): Match[] {
  return itemsOf(fieldAt(rule, "match")).map((match, term) => ({ path: ["route", "subRules", index, "match", term], match }));
}

const MAX_QUOTED = 253;

function quote(text: string): string {
  return JSON.stringify(text.slice(0, MAX_QUOTED));
}

function* boundedWork(spec: unknown): Iterable<Finding> {
  const matches = itemsOf(fieldAt(spec, "route", "subRules")).flatMap((subRule) => itemsOf(fieldAt(subRule, "match")));
  const resourceLists = matches.map((match) => fieldAt(match, "resources"));
  yield* boundedResourcePairs(resourceLists, ["route", "subRules"]);
  const limits = itemsOf(fieldAt(spec, "route", "globalLimits"));
  const patterns = [...matches, ...limits].map((match) => fieldAt(match, "namespaceRegex"));
  yield* boundedRegexes(stringsOf(patterns), ["route"], "namespaceRegex");
}
