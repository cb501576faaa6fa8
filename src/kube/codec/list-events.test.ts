import { describe, expect, it } from "vitest";
import { envelope, type Field } from "../../../test/support/kube-protobuf.ts";
import { createFrameSplitter, type Encoding, type Keep, readFrame } from "./codec.ts";
import { bookmarkFrame, listEvents } from "./list-events.ts";

const VERSION = 1_000n;
const framesOf = (encoding: Encoding, body: Uint8Array, keep: Keep = () => true) =>
  listEvents(encoding, "ADDED", body, VERSION, keep).events.map(({ frame }) => frame);
const textOf = (frames: readonly Uint8Array[]) => frames.map((frame) => Buffer.from(frame).toString("utf8"));
const namesOf = (frames: readonly Uint8Array[]) => frames.map((frame) => readFrame("json", frame).objects[0]?.name);
const json = (value: unknown) => Buffer.from(JSON.stringify(value));
const metadata = { resourceVersion: "1000" };
const pods = (...items: unknown[]) => json({ kind: "PodList", apiVersion: "v1", metadata, items });
const item = (name: string, version: string, type: object = {}) => ({
  ...type,
  metadata: { name, namespace: "a", resourceVersion: version },
});

describe("a JSON list as events", () => {
  it("gives each object the type that it lacks inside a list and keeps its other bytes", () => {
    const pod = '{"metadata":{"name":"x","resourceVersion":"7"},"n":9007199254740993}';
    const body = `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1000"},"items":[ ${pod} ]}`;
    expect(textOf(framesOf("json", Buffer.from(body)))).toEqual([
      `{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1",${pod.slice(1)}}\n`,
    ]);
  });

  it("keeps objects that have a type, such as custom resources, unchanged", () => {
    const foo = item("x", "7", { kind: "Foo", apiVersion: "test/v1" });
    const body = json({ kind: "FooList", apiVersion: "test/v1", metadata, items: [foo] });
    expect(textOf(framesOf("json", body))).toEqual([`${JSON.stringify({ type: "ADDED", object: foo })}\n`]);
  });

  it("can be DELETED events", () => {
    const [frame = ""] = textOf(
      listEvents("json", "DELETED", pods(item("x", "7")), VERSION, () => true).events.map(({ frame }) => frame),
    );
    expect(JSON.parse(frame)).toMatchObject({ type: "DELETED", object: { kind: "Pod", metadata: { name: "x" } } });
  });

  it("leaves out objects that are not kept", () => {
    expect(namesOf(framesOf("json", pods(item("a", "1"), item("b", "2")), ({ name }) => name === "b"))).toEqual(["b"]);
  });

  it("is empty for a list without items", () => {
    expect(framesOf("json", json({ kind: "PodList", apiVersion: "v1", metadata, items: null }))).toEqual([]);
  });

  it.each([
    ["a Table", { kind: "Table", apiVersion: "meta.k8s.io/v1", metadata, rows: [{ object: item("x", "1") }] }],
    ["objects of several kinds", { kind: "List", apiVersion: "v1", metadata, items: [item("x", "1")] }],
    ["no list", { kind: "Pod", apiVersion: "v1", metadata }],
    ["a list without a type", { metadata, items: [item("x", "1")] }],
    ["a list of another version", { kind: "PodList", apiVersion: "v1", metadata: { resourceVersion: "1001" }, items: [] }],
    ["a list without a version", { kind: "PodList", apiVersion: "v1", items: [] }],
    ["an object's version that is no number", { kind: "PodList", apiVersion: "v1", metadata, items: [item("x", "abc")] }],
    ["an object of a later version", { kind: "PodList", apiVersion: "v1", metadata, items: [item("x", "1001")] }],
    ["half a type", { kind: "PodList", apiVersion: "v1", metadata, items: [item("x", "1", { kind: "Pod" })] }],
  ])("refuses %s", (_, body) => {
    expect(() => framesOf("json", json(body))).toThrow(expect.objectContaining({ code: expect.stringMatching(/^CODEC_/) }));
  });

  it("refuses a truncated list", () => {
    const body = pods(item("x", "1"));
    for (const length of [1, 20, body.length - 1]) expect(() => framesOf("json", body.subarray(0, length))).toThrow();
  });
});

describe("a protobuf list as events", () => {
  const pod = (name: string, version: string): Field[] => [
    [
      1,
      [
        [1, name],
        [3, "a"],
        [6, version],
      ],
    ],
  ];
  const list = (...items: Field[][]) =>
    envelope("v1", "PodList", [[1, [[2, "1000"]]], ...items.map((fields): Field => [2, fields])]);

  it("has one frame for each object, with its type", () => {
    const frames = framesOf("protobuf", list(pod("b", "12"), pod("a", "3")));
    const seen: unknown[] = [];
    const splitter = createFrameSplitter("protobuf");
    for (const frame of frames) splitter.push(frame, (whole) => seen.push(readFrame("protobuf", whole, { versions: true })));
    expect(seen).toMatchObject([
      { type: "ADDED", objects: [{ name: "b", namespace: "a", resourceVersion: "12" }] },
      { type: "ADDED", objects: [{ name: "a", namespace: "a", resourceVersion: "3" }] },
    ]);
    expect(textOf(frames)[0]).toMatch(/Pod(?!List)/);
  });

  it.each([
    ["a document that is not a list", envelope("v1", "Pod", pod("x", "1"))],
    ["a list of another version", envelope("v1", "PodList", [[1, [[2, "999"]]]])],
    ["a list without a version", envelope("v1", "PodList", [[1, []]])],
  ])("refuses %s", (_, body) => {
    expect(() => framesOf("protobuf", body)).toThrow(expect.objectContaining({ code: expect.stringMatching(/^CODEC_/) }));
  });
});

describe("a bookmark behind the events of a list", () => {
  it.each<[string, string, string, string]>([
    ["of a built-in kind", "v1", "PodList", "Pod"],
    ["of a custom resource", "test/v1", "FooList", "Foo"],
    ["of metadata alone", "meta.k8s.io/v1", "PartialObjectMetadataList", "PartialObjectMetadata"],
  ])("%s has the type of the list's items and the version, in JSON and in protobuf", (_, apiVersion, kind, itemKind) => {
    const bodies = {
      json: json({ kind, apiVersion, metadata, items: [] }),
      protobuf: envelope(apiVersion, kind, [[1, [[2, "1000"]]]]),
    };
    for (const encoding of ["json", "protobuf"] as const) {
      const whole: Uint8Array[] = [];
      const splitter = createFrameSplitter(encoding);
      const { type } = listEvents(encoding, "ADDED", bodies[encoding], VERSION, () => true);
      splitter.push(bookmarkFrame(encoding, type, 9_007_199_254_740_993n), (frame) => whole.push(frame));
      const [frame = Buffer.of()] = whole;
      expect(whole.map((each) => readFrame(encoding, each, { versions: true }))).toMatchObject([
        { type: "BOOKMARK", objects: [{ name: "", resourceVersion: "9007199254740993" }] },
      ]);
      if (encoding === "json")
        expect(JSON.parse(Buffer.from(frame).toString()).object).toMatchObject({ kind: itemKind, apiVersion });
      else expect(Buffer.from(frame).includes(envelope(apiVersion, itemKind, [[1, [[6, "9007199254740993"]]]]))).toBe(true);
    }
  });

  it("is refused for what is no list of one kind", () => {
    for (const kind of ["Pod", "List", "Table"])
      expect(() => framesOf("json", json({ kind, apiVersion: "v1", metadata, items: [] }))).toThrow(
        expect.objectContaining({ code: "CODEC_NOT_A_LIST" }),
      );
  });
});

describe("versions", () => {
  it("are read from events only if requested", () => {
    const frame = json({ type: "BOOKMARK", object: { kind: "Pod", metadata: { resourceVersion: "9" } } });
    expect(readFrame("json", frame).objects).toEqual([{ namespace: "", name: "" }]);
    expect(readFrame("json", frame, { versions: true }).objects).toEqual([{ namespace: "", name: "", resourceVersion: "9" }]);
  });

  it.each([
    ["twice", '"resourceVersion":"9","resourceVersion":"8"'],
    ["a number", '"resourceVersion":9'],
    ["in another case as well", '"resourceVersion":"9","ResourceVersion":"8"'],
  ])("that stand there %s are none, and make nothing unreadable", (_, text) => {
    const frame = Buffer.from(`{"type":"ADDED","object":{"metadata":{"name":"x",${text}}}}`);
    expect(readFrame("json", frame, { versions: true })).toMatchObject({
      objects: [{ name: "x", resourceVersion: "" }],
      unreadable: 0,
    });
  });
});
