import { describe, expect, it } from "vitest";
import type { ReviewSubject } from "../kube/admission-review.ts";
import { createMatcher } from "./matcher.ts";
import type { AdmissionRule } from "./policy.ts";
import { reviewRequestOf } from "./policy-request.ts";

const ALL: AdmissionRule = { apiGroups: ["*"], apiVersions: ["*"], operations: ["*"], resources: ["*"], scope: "*" };
const CREATE_POD: ReviewSubject = {
  apiVersion: "admission.k8s.io/v1",
  uid: "u",
  resource: { group: "", version: "v1", resource: "pods" },
  subresource: "",
  namespace: "prod",
  name: "web",
  operation: "CREATE",
  labels: {},
  oldLabels: undefined,
  dryRun: false,
};
const STATUS = { subresource: "status" };
const NODE = { resource: { group: "", version: "v1", resource: "nodes" }, namespace: "" };
const NAMESPACE = { resource: { group: "", version: "v1", resource: "namespaces" } };

describe("a rule about admission", () => {
  it.each<[Partial<AdmissionRule>, Partial<ReviewSubject>, boolean]>([
    [{}, {}, true],
    [{}, STATUS, false],
    [{ resources: ["pods"] }, {}, true],
    [{ resources: ["pods"] }, STATUS, false],
    [{ resources: ["pods"] }, NODE, false],
    [{ resources: ["pods/*"] }, {}, true],
    [{ resources: ["pods/*"] }, STATUS, true],
    [{ resources: ["pods/status"] }, STATUS, true],
    [{ resources: ["*/status"] }, STATUS, true],
    [{ resources: ["*/status"] }, {}, false],
    [{ resources: ["*/*"] }, STATUS, true],
    [{ operations: ["DELETE", "CREATE"] }, {}, true],
    [{ operations: ["DELETE"] }, {}, false],
    [{ apiGroups: ["apps"] }, {}, false],
    [{ apiVersions: ["v1beta1"] }, {}, false],
    [{ scope: "Namespaced" }, {}, true],
    [{ scope: "Namespaced" }, NODE, false],
    [{ scope: "Cluster" }, NODE, true],
    [{ scope: "Cluster" }, {}, false],
    [{ scope: "Cluster" }, NAMESPACE, true],
  ])("%j: %j: %s", (rule, review, expected) => {
    const match = { resources: [], urls: [], http: [], admissions: [{ ...ALL, ...rule }] };
    const matcher = createMatcher([{ match }]);
    expect(matcher.match(reviewRequestOf({ ...CREATE_POD, ...review }))).toHaveLength(expected ? 1 : 0);
  });

  it("is not about requests, and no rule about requests is about reviews", () => {
    const everything = { apiGroups: ["*"], resources: ["*"], verbs: ["*"], namespaces: ["*"], clusterScope: true };
    const requests = { resources: [everything], urls: [{ url: "*", methods: ["*"] }], http: [] };
    expect(createMatcher([{ match: requests }]).match(reviewRequestOf(CREATE_POD))).toEqual([]);
  });
});

it("the key of an invented review is bounded, however long its names are", () => {
  expect(reviewRequestOf({ ...CREATE_POD, name: "n".repeat(100_000) }).key.length).toBeLessThanOrEqual(1_024);
});
