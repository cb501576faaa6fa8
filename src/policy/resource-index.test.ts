import fc from "fast-check";
import { expect, it } from "vitest";
import { budget } from "../../test/support/fuzz.ts";
import { policyRequest, resourceRule } from "../../test/support/policies.ts";
import type { ResourceRule } from "./policy.ts";
import type { Action, PolicyRequest } from "./policy-request.ts";
import { createResourceIndex } from "./resource-index.ts";

const ruleOf = (part: ResourceRule) => ({ match: { resources: [part], urls: [], http: [] } });

/** The meaning of a rule, without an index. */
function isAbout(rule: ResourceRule, { verb, group, resource, namespace }: Action, isLock: boolean): boolean {
  const has = (list: readonly string[], ...values: string[]) => ["*", ...values].some((value) => list.includes(value));
  const [object = "", sub] = resource.split("/");
  const isNamed = has(rule.resources, resource, ...(sub === undefined ? [] : [`${object}/*`, `*/${sub}`]));
  const isNamespace = group === "" && object === "namespaces" && namespace !== "";
  const isPlace =
    (namespace !== "" && has(rule.namespaces, namespace)) || (rule.clusterScope && (namespace === "" || isNamespace));
  const isSpared = isLock && !(rule.apiGroups.includes("coordination.k8s.io") && rule.resources.includes("leases"));
  return isNamed && isPlace && has(rule.verbs, verb) && has(rule.apiGroups, group) && !isSpared;
}

const subset = (...items: string[]) => fc.oneof(fc.constant(["*"]), fc.subarray(items, { minLength: 1 }));
const rule: fc.Arbitrary<ResourceRule> = fc.record({
  apiGroups: subset("", "apps", "coordination.k8s.io"),
  resources: subset("pods", "pods/status", "pods/*", "*/status", "*/proxy", "leases", "namespaces"),
  verbs: subset("get", "delete", "deletecollection"),
  namespaces: fc.oneof(fc.constant([]), subset("a", "b")),
  clusterScope: fc.boolean(),
});
const GROUPS = ["/api/v1", "/apis/apps/v1", "/apis/coordination.k8s.io/v1", "/apis/other.example/v1"];
const line = fc
  .tuple(
    fc.constantFrom("GET", "DELETE", "PATCH"),
    fc.constantFrom(...GROUPS),
    fc.constantFrom("", "/namespaces/a", "/namespaces/b", "/namespaces/c"),
    fc.constantFrom(
      "",
      "/pods",
      "/pods/p",
      "/pods/p/status",
      "/pods/p/proxy/x",
      "/pods/p/eviction",
      "/leases/l",
      "/others/o",
      "/others/o/status",
    ),
  )
  .map(([method, group, namespace, rest]) => `${method} ${group}${namespace}${rest || "/namespaces"}`);

it("finds the rules that a reading of each one finds, also when it has seen other requests before", () => {
  fc.assert(
    fc.property(fc.array(rule, { maxLength: 6 }), fc.array(fc.tuple(line, fc.boolean()), { maxLength: 12 }), (parts, lines) => {
      const rules = parts.map(ruleOf);
      const index = createResourceIndex(rules);
      for (const [text, isLock] of [...lines, ...lines]) {
        const request = policyRequest(text, isLock);
        const expected = rules.filter(({ match: { resources } }) =>
          resources.some((part) => request.actions.some((action) => isAbout(part, action, request.isLock))),
        );
        expect(index.find(request)).toEqual(expected);
      }
    }),
    budget(2_000),
  );
});

it("requests that no rule tells apart share one result, whatever their names", () => {
  const index = createResourceIndex(Array.from({ length: 100 }, () => ruleOf(resourceRule())));
  const results = Array.from({ length: 5_000 }, (_, at) =>
    index.find(policyRequest(`GET /apis/g${at}/v1/namespaces/n${at}/kind${at}/x`)),
  );
  expect(results[0]).toHaveLength(100);
  expect(new Set(results).size).toBe(1);
});

it("finds the same after more different requests than it remembers", () => {
  const namespaces = Array.from({ length: 3_000 }, (_, at) => `n${at}`);
  const rules = namespaces.map((namespace) => ruleOf(resourceRule({ namespaces: [namespace], clusterScope: false })));
  const index = createResourceIndex(rules);
  const find = (namespace: string): PolicyRequest => policyRequest(`GET /api/v1/namespaces/${namespace}/pods/p`);
  for (const round of [1, 2]) {
    for (const [at, namespace] of namespaces.entries()) expect(index.find(find(namespace)), `${round}`).toEqual([rules[at]]);
  }
});
