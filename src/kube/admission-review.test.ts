import { describe, expect, it } from "vitest";
import { readReview } from "../../test/support/read-review.ts";
import { allowReview, MAX_REVIEW_BYTES } from "./admission-review.ts";

const REQUEST = {
  uid: "1-2-3",
  resource: { group: "apps", version: "v1", resource: "deployments" },
  subResource: "status",
  namespace: "shop",
  name: "web",
  operation: "UPDATE",
  dryRun: true,
  object: { metadata: { name: "web", labels: { tier: "new" } } },
  oldObject: { metadata: { name: "web", labels: { tier: "old" } } },
};
const bytes = (value: unknown) => Buffer.from(typeof value === "string" ? value : JSON.stringify(value));
const review = (request: object, apiVersion = "admission.k8s.io/v1") => ({ apiVersion, kind: "AdmissionReview", request });

describe("readReview", () => {
  it.each(["admission.k8s.io/v1", "admission.k8s.io/v1beta1"])("reads what a review of %s is about", (version) => {
    expect(readReview(bytes(review(REQUEST, version)))).toEqual({
      apiVersion: version,
      uid: "1-2-3",
      resource: { group: "apps", version: "v1", resource: "deployments" },
      subresource: "status",
      namespace: "shop",
      name: "web",
      operation: "UPDATE",
      labels: { tier: "new" },
      oldLabels: { tier: "old" },
      dryRun: true,
    });
  });

  it("takes the name of a created object from the object", () => {
    const request = { ...REQUEST, operation: "CREATE", name: "", oldObject: null };
    expect(readReview(bytes(review(request)))).toMatchObject({ name: "web", oldLabels: undefined });
    const generated = { ...request, object: { metadata: { generateName: "web-" } } };
    expect(readReview(bytes(review(generated)))).toMatchObject({ name: "", labels: {} });
  });

  it("reads absent fields of a cluster-scoped object as empty", () => {
    const { namespace, subResource, dryRun, ...request } = REQUEST;
    expect(readReview(bytes(review(request)))).toMatchObject({ namespace: "", subresource: "", dryRun: false });
  });

  it("keeps a label __proto__ a label", () => {
    const text = JSON.stringify(review(REQUEST)).replace('"tier":"new"', '"__proto__":"x"');
    expect(Object.entries(readReview(bytes(text))?.labels ?? {})).toEqual([["__proto__", "x"]]);
  });

  it.each<[string, unknown]>([
    ["a ConversionReview", { apiVersion: "apiextensions.k8s.io/v1", kind: "ConversionReview", request: { uid: "u" } }],
    ["another kind", { ...review(REQUEST), kind: "ConversionReview" }],
    ["an unknown version", review(REQUEST, "admission.k8s.io/v2")],
    ["a response", { apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", response: {} }],
    ["no uid", review({ ...REQUEST, uid: "" })],
    ["an unknown operation", review({ ...REQUEST, operation: "PATCH" })],
    ["no resource", review({ ...REQUEST, resource: null })],
    ["a list", []],
    ["no JSON", "{"],
    ["an empty body", ""],
  ])("does not read %s", (_, body) => {
    expect(readReview(bytes(body))).toBeUndefined();
  });

  it("does not read a review that is too long", () => {
    const text = JSON.stringify(review(REQUEST));
    expect(readReview(bytes(text.padEnd(MAX_REVIEW_BYTES, " ")))).toBeDefined();
    expect(readReview(bytes(text.padEnd(MAX_REVIEW_BYTES + 1, " ")))).toBeUndefined();
  });
});

describe("an answer", () => {
  const subject = { apiVersion: "admission.k8s.io/v1beta1", uid: "1-2-3" } as const;
  it("that allows has the request's uid, version and kind", () => {
    expect(allowReview(subject)).toEqual({
      apiVersion: "admission.k8s.io/v1beta1",
      kind: "AdmissionReview",
      response: { uid: "1-2-3", allowed: true },
    });
  });
});
