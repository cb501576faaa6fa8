// `node bench/matching.ts`: what it costs to find the rules of policies that match a request, in microseconds, by the number of rules; and how long
// the largest set of rules takes to be indexed, in milliseconds of the event loop.

import { POLICY, policiesDigest, readPolicies } from "../src/mesh/contract/policy-type.ts";
import { createEngine } from "../src/policy/engine/engine.ts";
import { createMatcher } from "../src/policy/matcher.ts";
import type { LimitRule, ResourceRule } from "../src/policy/policy.ts";
import type { PolicyRequest } from "../src/policy/policy-request.ts";
import { limitRule, policyRequest, resourceRule } from "../test/support/policies.ts";

const MEASURED_MS = 300;

const rules = (count: number, about: (at: number) => Partial<ResourceRule>): LimitRule[] =>
  Array.from({ length: count }, (_, at) => {
    const match = { resources: [resourceRule(about(at))], urls: [], http: [] };
    return limitRule({ kind: "deny" }, { name: `rule-${at}`, match });
  });

/** Objects of so many namespaces in turn, as an operator asks for them. */
const requests = (namespaces: number, verb = "GET") =>
  Array.from({ length: namespaces }, (_, at) => policyRequest(`${verb} /api/v1/namespaces/team-${at}/pods/p`));

/** Microseconds for each request. */
function costOf(set: readonly LimitRule[], sent: readonly PolicyRequest[]): number {
  const matcher = createMatcher(set);
  let count = 0;
  let startedMs = performance.now();
  for (const isWarm of [false, true]) {
    if (isWarm) [count, startedMs] = [0, performance.now()];
    while (performance.now() - startedMs < MEASURED_MS) {
      for (let i = 0; i < 1_000; i++) matcher.match(sent[count++ % sent.length] ?? policyRequest("GET /"));
    }
  }
  return ((performance.now() - startedMs) * 1_000) / count;
}

/** Milliseconds. @param pairs of a resource and a namespace, in all rules */
function indexCost(count: number, pairs: number): number {
  const each = Math.floor(pairs / count);
  const set = rules(count, (at) => ({
    resources: ["pods"],
    namespaces: Array.from({ length: each }, (_, index) => `team-${at * each + index}`),
  }));
  const times = Array.from({ length: 9 }, () => {
    const startedMs = performance.now();
    createMatcher(set);
    return performance.now() - startedMs;
  });
  return times.sort((a, b) => a - b)[4] ?? Number.NaN;
}

/** The median time of a push of the largest set of a pod: what the event loop of a proxy pays in one piece. */
function pushCost(count: number, pairs: number): number {
  const limits = rules(count, (at) => ({
    resources: ["pods"],
    namespaces: Array.from({ length: pairs / count }, (_, n) => `team-${at}-${n}`),
    clusterScope: false,
  })).map(({ match }, at) => limitRule({ kind: "bucket", perSecond: 1, burst: 5 }, { name: `rule-${at}`, match }));
  const set = { limits, faults: [], egress: [] };
  const head = { version: 1, digest: policiesDigest(set) };
  const body = POLICY.encode({ ...head, ...set });
  const engine = createEngine({ now: () => 0 });
  const times = Array.from({ length: 21 }, () => {
    const startedMs = performance.now();
    engine.update(readPolicies(body, head).resource.limits);
    return performance.now() - startedMs;
  });
  return times.sort((a, b) => a - b)[10] ?? Number.NaN;
}

const [one, many] = [requests(1), requests(10_000)];
const found: Readonly<Record<string, number>> = {
  "no rules, us": costOf([], one),
  "10 rules that all match, us": costOf(
    rules(10, () => ({})),
    one,
  ),
  "1,000 rules that all match, us": costOf(
    rules(1_000, () => ({})),
    one,
  ),
  "1,000 rules that all match, 10,000 namespaces, us": costOf(
    rules(1_000, () => ({})),
    many,
  ),
  "1,000 rules, one matches, 10,000 namespaces, us": costOf(
    rules(1_000, (at) => ({ namespaces: [`team-${at}`], clusterScope: false })),
    many,
  ),
  "1,000 rules about another verb, us": costOf(
    rules(1_000, () => ({ resources: ["pods"], verbs: ["delete"] })),
    one,
  ),
  "1,024 rules with 16,384 pairs, indexed, ms": indexCost(1_024, 16_384),
  "the largest set of a pod, read and enforced, ms": pushCost(1_024, 16_384),
};
for (const [name, value] of Object.entries(found)) process.stdout.write(`${value.toFixed(2).padStart(10)}  ${name}\n`);
