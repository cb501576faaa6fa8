import { describe, expect, it } from "vitest";
import { StatusError } from "../../../kube/status.ts";
import { decodeReview, encodeReview } from "./admission-review.ts";

const REQUEST = {
  uid: "1-2-3",
  kind: { group: "", version: "v1", kind: "Pod" },
  resource: { group: "", version: "v1", resource: "pods" },
  operation: "CREATE",
  namespace: "ops",
  dryRun: true,
  object: { metadata: { name: "x" }, spec: { unknown: [1, { "": 2 }] } },
  oldObject: null,
};
const bytes = (value: unknown) => Buffer.from(typeof value === "string" ? value : JSON.stringify(value));
const review = (request: object) => ({ apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", request });

describe("decodeReview", () => {
  it("passes the object on unchanged", () => {
    const request = decodeReview(bytes(review(REQUEST)));
    expect(request).toMatchObject({ uid: "1-2-3", operation: "CREATE", namespace: "ops", dryRun: true });
    expect(JSON.stringify(request.object)).toBe(JSON.stringify(REQUEST.object));
    expect(request.oldObject).toBeNull();
  });

  it.each<[string, unknown, string]>([
    ["no JSON", "{", "not JSON"],
    ["an empty body", "", "not JSON"],
    ["a list", [], "the body"],
    ["another version", { ...review(REQUEST), apiVersion: "admission.k8s.io/v1beta1" }, "apiVersion"],
    ["a response", { apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", response: {} }, "request"],
    ["no uid", review({ ...REQUEST, uid: "" }), "request.uid"],
    ["a uid that would make the answer long", review({ ...REQUEST, uid: "x".repeat(254) }), "request.uid"],
    ["a name that would make the answer long", review({ ...REQUEST, name: "x".repeat(1_025) }), "request.name"],
    ["an object that is none", review({ ...REQUEST, object: "x" }), "request.object"],
    ["an operation that there is not", review({ ...REQUEST, operation: "PATCH" }), "request.operation"],
  ])("refuses %s, and says what is wrong", (_, body, word) => {
    const decode = () => decodeReview(bytes(body));
    expect(decode).toThrow(StatusError);
    expect(decode).toThrow(/^ctrlmesh: /);
    expect(decode).toThrow(word);
  });
});

describe("encodeReview", () => {
  const response = (answer: Parameters<typeof encodeReview>[1]) => (encodeReview("u", answer) as { response: object }).response;

  it("contains the first warnings only, since each may be long", () => {
    const warnings = Array.from({ length: 10_000 }, (_, i) => `container c${i}`);
    const { warnings: shown = [] } = response({ allowed: true, warnings }) as { warnings?: string[] };
    expect(shown.length).toBe(33);
    expect(shown.slice(-2)).toEqual(["ctrlmesh: container c31", "ctrlmesh: and 9968 more"]);
  });

  it("contains only the uid if there is nothing to report", () => {
    expect(encodeReview("u", { allowed: true, patch: [], warnings: [] })).toEqual({
      apiVersion: "admission.k8s.io/v1",
      kind: "AdmissionReview",
      response: { uid: "u", allowed: true },
    });
  });

  it("sends a patch in base64 with its type", () => {
    const patch = [{ op: "add", path: "/metadata/labels", value: { ä: "ö" } }] as const;
    const sent = response({ allowed: true, patch, warnings: ["careful"] }) as { patch: string };
    expect(sent).toMatchObject({ allowed: true, patchType: "JSONPatch", warnings: ["ctrlmesh: careful"] });
    expect(JSON.parse(Buffer.from(sent.patch, "base64").toString("utf8"))).toEqual(patch);
  });

  it("adds the prefix to a refusal once, with its reason and code", () => {
    const refusal = { allowed: false, reason: "Forbidden", warnings: [] } as const;
    const status = { reason: "Forbidden", code: 403, message: "ctrlmesh: no", status: "Failure" };
    expect(response({ ...refusal, message: "no" })).toMatchObject({ allowed: false, status });
    expect(response({ ...refusal, message: "ctrlmesh: no" })).toMatchObject({ allowed: false, status });
  });
});
