import { describe, expect, it } from "vitest";
import { envelope } from "../../../test/support/kube-protobuf.ts";
import { readObjectMeta } from "./codec.ts";

describe("the metadata of a request's body", () => {
  it("is read in JSON and protobuf", () => {
    const json = Buffer.from('{"spec":{"metadata":{"name":"decoy"}},"metadata":{"name":"x","namespace":"a"}}');
    expect(readObjectMeta("json", json)).toEqual({ name: "x", namespace: "a" });
    const protobuf = envelope("v1", "ConfigMap", [
      [
        1,
        [
          [1, "x"],
          [3, "a"],
        ],
      ],
    ]);
    expect(readObjectMeta("protobuf", protobuf)).toEqual({ name: "x", namespace: "a" });
  });

  it.each([
    ["a second name", '{"metadata":{"name":"x","name":"y"}}', "CODEC_AMBIGUOUS"],
    ["a name in another case", '{"metadata":{"name":"x","Name":"y"}}', "CODEC_AMBIGUOUS"],
    ["no metadata", '{"kind":"Lease"}', "CODEC_AMBIGUOUS"],
    ["half an object", '{"metadata":{"name":"x"', "CODEC_MALFORMED"],
  ])("with %s is an error", (_, text, code) => {
    expect(() => readObjectMeta("json", Buffer.from(text))).toThrow(expect.objectContaining({ code }));
  });
});
