import { describe, expect, test } from "vitest";
import { encodingOf, narrowAccept, preferredEncoding } from "./content-negotiation.ts";

describe("encodingOf", () => {
  test.each([
    ["application/json", "json"],
    ["application/json; charset=utf-8", "json"],
    ["Application/JSON;as=Table;v=v1;g=meta.k8s.io", "json"],
    ["application/json;stream=watch", "json"],
    ["application/merge-patch+json", "json"],
    ["application/strategic-merge-patch+json", "json"],
    ["application/vnd.kubernetes.protobuf", "protobuf"],
    ["application/vnd.kubernetes.protobuf;stream=watch", "protobuf"],
    ["application/cbor", "cbor"],
    ["application/cbor-seq", "cbor"],
    ["application/json-patch+json", "other"],
    ["application/apply-patch+yaml", "other"],
    ["application/yaml", "other"],
    ["text/plain", "other"],
    ["constructor", "other"],
    ["", "other"],
    [undefined, "other"],
  ])("%s is %s", (type, encoding) => {
    expect(encodingOf(type)).toBe(encoding);
  });
});

describe("narrowAccept", () => {
  test.each([
    ["application/vnd.kubernetes.protobuf,application/json", "application/vnd.kubernetes.protobuf,application/json"],
    [
      "application/cbor, application/vnd.kubernetes.protobuf;q=0.9, application/json;q=0.8",
      "application/vnd.kubernetes.protobuf;q=0.9,application/json;q=0.8",
    ],
    [
      "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
      "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
    ],
    ["application/yaml, */*", "*/*"],
    ["application/yaml", "application/json"],
    ["text/html, application/cbor-seq", "application/json"],
    // Kubernetes' own reader of Accept knows no quotes.
    ['application/json;x="a,application/cbor", */*', 'application/json;x="a,*/*'],
    [`"${'\\"'.repeat(100_000)}`, "application/json"],
    ["APPLICATION/CBOR,application/*", "application/*"],
    ["constructor", "application/json"],
    ["", "application/json"],
    [undefined, "application/json"],
  ])("%s becomes %s", (accept, narrowed) => {
    expect(narrowAccept(accept)).toBe(narrowed);
  });
});

const PROTOBUF = "application/vnd.kubernetes.protobuf";

describe("preferredEncoding", () => {
  test.each([
    [undefined, "json"],
    ["", "json"],
    ["text/html", "json"],
    ["*/*", "json"],
    ["application/json", "json"],
    [PROTOBUF, "protobuf"],
    [`${PROTOBUF};stream=watch,application/json;stream=watch`, "protobuf"],
    [`application/json,${PROTOBUF}`, "json"],
    [`application/json;q=0.5, ${PROTOBUF};q=0.9`, "protobuf"],
    [`${PROTOBUF};q=0,application/json`, "json"],
    [`${PROTOBUF};q=nonsense`, "json"],
    [`application/json;as=Table;v=v1;g=meta.k8s.io,${PROTOBUF}`, "json"],
    ["application/cbor,application/vnd.kubernetes.protobuf", "protobuf"],
  ])("reads %s as %s", (accept, encoding) => {
    expect(preferredEncoding(accept)).toBe(encoding);
  });
});
