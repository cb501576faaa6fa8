import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { envelope, type Field } from "../../../test/support/kube-protobuf.ts";
import { readEvent } from "./event-reader.ts";

const subject = { apiVersion: "v1", kind: "Pod", namespace: "shop", name: "shop-0" };
const json = (value: unknown) => Buffer.from(typeof value === "string" ? value : JSON.stringify(value));
const reference = ({ apiVersion, kind, namespace, name } = subject): Field[] => [
  [1, kind],
  [2, namespace],
  [3, name],
  [4, "uid"],
  [5, apiVersion],
];
const protobuf = (fields: Field[]) => envelope("v1", "Event", fields);

describe("an Event is read with its name and its subject", () => {
  it("in JSON, by the field of its group", () => {
    const body = json({ kind: "Event", metadata: { name: "a.1" }, involvedObject: { ...subject, uid: "u" }, message: "m" });
    expect(readEvent("json", "involvedObject", body)).toEqual({ name: "a.1", subject });
    expect(readEvent("json", "regarding", body)).toBeUndefined();
  });
  it("in protobuf, by the field of its group", () => {
    const body = (number: number) =>
      protobuf([
        [1, [[1, "a.1"]]],
        [number, reference()],
        [3, "reason"],
      ]);
    expect(readEvent("protobuf", "involvedObject", body(2))).toEqual({ name: "a.1", subject });
    expect(readEvent("protobuf", "regarding", body(8))).toEqual({ name: "a.1", subject });
    expect(readEvent("protobuf", "regarding", body(2))?.subject.name).toBe("");
  });
});

describe("an Event that two readers may read differently is not read", () => {
  const twice = `{"metadata":{"name":"a.1"},"involvedObject":{"kind":"Secret"},"involvedObject":${JSON.stringify(subject)}}`;
  it.each([twice, `{"metadata":{"name":"a","name":"b"},"involvedObject":${JSON.stringify(subject)}}`, "", "[]", "{", "null"])(
    "in JSON: %s",
    (text) => {
      expect(readEvent("json", "involvedObject", json(text))).toBeUndefined();
    },
  );
  it("in protobuf: a subject or a part of it twice, or no Event at all", () => {
    const meta: Field = [1, [[1, "a.1"]]];
    expect(readEvent("protobuf", "involvedObject", protobuf([meta, [2, reference()], [2, reference()]]))).toBeUndefined();
    expect(readEvent("protobuf", "involvedObject", protobuf([meta, [2, [...reference(), [3, "x"]]]]))).toBeUndefined();
    expect(readEvent("protobuf", "involvedObject", protobuf([meta, [2, 7]]))).toBeUndefined();
    expect(readEvent("protobuf", "involvedObject", Buffer.from("no protobuf"))).toBeUndefined();
  });
  it("and no bytes make the reader throw", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 80 }), (bytes) => {
        const bodies = [bytes, protobuf([]), envelope("v1", "Event", bytes)];
        for (const body of bodies) {
          readEvent("json", "involvedObject", body);
          readEvent("protobuf", "regarding", body);
        }
      }),
    );
  });
});
