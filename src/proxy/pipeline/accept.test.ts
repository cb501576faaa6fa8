import { describe, expect, it } from "vitest";
import { preferredEncoding } from "./accept.ts";

const PROTOBUF = "application/vnd.kubernetes.protobuf";

describe("preferredEncoding", () => {
  it.each([
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
