import { describe, expect, test } from "vitest";
import { bytesOf, decode } from "../../../test/support/kube-protobuf.ts";
import { createStatus } from "../status.ts";
import { createFrameSplitter, encodeErrorFrame, encodeStatus, readFrame } from "./codec.ts";
import { readEnvelope } from "./protobuf/envelope.ts";

const status = createStatus("Forbidden", 'pods "a" is forbidden: owned by subset "blue" – ü', {
  name: "a",
  group: "apps",
  kind: "pods",
  uid: "u",
  causes: [{ reason: "Owned", message: "m", field: "metadata.namespace" }],
  retryAfterSeconds: 300,
});

describe("a Status", () => {
  test("as JSON is the object on one line", () => {
    const text = Buffer.from(encodeStatus("json", status)).toString();
    expect(JSON.parse(text)).toEqual(status);
    expect(text.endsWith("}\n")).toBe(true);
  });

  test("as protobuf has the fields of metav1.Status in an envelope of that type", () => {
    const { type, raw } = readEnvelope(encodeStatus("protobuf", status));
    expect(type).toEqual({ apiVersion: "v1", kind: "Status" });
    const fields = decode(raw);
    expect([2, 3, 4].map((number) => bytesOf(fields, number)?.toString())).toEqual(["Failure", status.message, "Forbidden"]);
    expect(fields.find(({ number }) => number === 6)?.value).toBe(403);
    const details = decode(bytesOf(fields, 5) ?? Buffer.alloc(0));
    expect([1, 2, 3, 6].map((number) => bytesOf(details, number)?.toString())).toEqual(["a", "apps", "pods", "u"]);
    expect(details.find(({ number }) => number === 5)?.value).toBe(300);
    const cause = decode(bytesOf(details, 4) ?? Buffer.alloc(0));
    expect([1, 2, 3].map((number) => bytesOf(cause, number)?.toString())).toEqual(["Owned", "m", "metadata.namespace"]);
  });

  test("without details has no details field", () => {
    const fields = decode(readEnvelope(encodeStatus("protobuf", createStatus("Expired", "list again"))).raw);
    expect(fields.map(({ number }) => number)).toEqual([1, 2, 3, 4, 6]);
  });
});

test.each(["json", "protobuf"] as const)("an ERROR event in %s is one whole frame", (encoding) => {
  const frame = encodeErrorFrame(encoding, status);
  const frames: Uint8Array[] = [];
  const splitter = createFrameSplitter(encoding);
  splitter.push(frame, (each) => frames.push(each));
  expect(frames.map((each) => Buffer.from(each))).toEqual([Buffer.from(frame)]);
  expect(splitter.atBoundary).toBe(true);
  expect(readFrame(encoding, frame)).toEqual({ type: "ERROR", objects: [], unreadable: 0, isTable: false });
});
