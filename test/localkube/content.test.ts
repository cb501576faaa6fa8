import { describe, expect, it } from "vitest";
import { PROTOBUF_TYPE } from "../../src/kube/media-types.ts";
import { decodeBody, negotiate } from "./content.ts";

const field = (number: number, value: Buffer) => Buffer.concat([Buffer.from([(number << 3) | 2, value.length]), value]);
const text = (number: number, value: string) => field(number, Buffer.from(value));
const varint = (number: number, value: number) => Buffer.from([number << 3, value]);

function envelope(apiVersion: string, kind: string, raw: Buffer): Buffer {
  return Buffer.concat([Buffer.from("k8s\0"), field(1, Buffer.concat([text(1, apiVersion), text(2, kind)])), field(2, raw)]);
}

describe("Accept", () => {
  it.each([
    [undefined, "object"],
    ["*/*", "object"],
    ["application/vnd.kubernetes.protobuf, application/json", "object"],
    ["application/json;as=Table;v=v1;g=meta.k8s.io, application/json", "table"],
    ["application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io", "metadata"],
    ["application/json;as=Unknown;v=v1;g=meta.k8s.io, */*", "object"],
  ])("%s gives %s", (accept, form) => {
    expect(negotiate(accept).form).toBe(form);
  });

  it.each(["application/vnd.kubernetes.protobuf", "text/html", "application/json;as=Unknown;v=v1;g=meta.k8s.io"])(
    "%s is refused",
    (accept) => {
      expect(() => negotiate(accept)).toThrow(/media types/);
    },
  );
});

describe("bodies", () => {
  it("are read from JSON and YAML; malformed ones are bad requests", () => {
    expect(decodeBody(Buffer.from('{"a":1}'), "application/json")).toEqual({ a: 1 });
    expect(decodeBody(Buffer.from("a: 1\n"), "application/apply-patch+yaml")).toEqual({ a: 1 });
    expect(decodeBody(Buffer.alloc(0), "")).toBeUndefined();
    expect(() => decodeBody(Buffer.from("{"), "application/json")).toThrow(/reading the body/);
  });

  it("are read from protobuf: maps, bytes, times, and zero values of pointers", () => {
    const metadata = field(
      1,
      Buffer.concat([
        text(1, "one"),
        text(3, ""),
        varint(7, 0),
        field(8, Buffer.alloc(0)),
        field(11, Buffer.concat([text(1, "a"), text(2, "b")])),
      ]),
    );
    const data = field(2, Buffer.concat([text(1, "key"), text(2, "value")]));
    const binary = field(3, Buffer.concat([text(1, "raw"), field(2, Buffer.from([1, 2]))]));
    expect(decodeBody(envelope("v1", "ConfigMap", Buffer.concat([metadata, data, binary, varint(4, 0)])), PROTOBUF_TYPE)).toEqual(
      {
        apiVersion: "v1",
        kind: "ConfigMap",
        metadata: { name: "one", labels: { a: "b" } },
        data: { key: "value" },
        binaryData: { raw: "AQI=" },
        immutable: false,
      },
    );
    const spec = field(
      2,
      Buffer.concat([text(1, ""), varint(2, 15), field(4, Buffer.concat([varint(1, 100), varint(2, 0)])), varint(5, 0)]),
    );
    expect(decodeBody(envelope("coordination.k8s.io/v1", "Lease", spec), PROTOBUF_TYPE)).toMatchObject({
      spec: { holderIdentity: "", leaseDurationSeconds: 15, renewTime: "1970-01-01T00:01:40.000000Z", leaseTransitions: 0 },
    });
  });

  it.each([
    ["no envelope", Buffer.from("nothing")],
    ["an unknown kind", envelope("v1", "Mystery", Buffer.alloc(0))],
    ["an unknown field", envelope("v1", "ConfigMap", text(90, "x"))],
    ["a field beyond the end", envelope("v1", "ConfigMap", Buffer.from([0x12, 0x7f]))],
  ])("in protobuf with %s are refused, so that nothing is lost", (_what, body) => {
    expect(() => decodeBody(body, PROTOBUF_TYPE)).toThrow(/protobuf/);
  });
});
