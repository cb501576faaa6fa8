import { describe, expect, test } from "vitest";
import { envelope, message, watchFrame } from "../../../test/support/kube-protobuf.ts";
import { MeshError } from "../../base/errors.ts";
import { createFrameSplitter, type Encoding, filterTableFrame, type ItemMeta, readFrame } from "./codec.ts";

const mine = ({ namespace }: ItemMeta) => namespace === "mine";

function event(type: string, object: object): string {
  return `${JSON.stringify({ type, object })}\n`;
}

function pod(namespace: string, name: string): object {
  return { kind: "Pod", apiVersion: "v1", metadata: { name, namespace }, spec: { metadata: { namespace: "mine" } } };
}

function podMessage(namespace: string, name: string): Buffer {
  return envelope("v1", "Pod", [
    [
      1,
      [
        [1, name],
        [3, namespace],
      ],
    ],
  ]);
}

function split(encoding: Encoding, chunks: Uint8Array[], maxFrameBytes?: number): { frames: string[]; atBoundary: boolean } {
  const splitter = createFrameSplitter(encoding, maxFrameBytes);
  const frames: string[] = [];
  for (const chunk of chunks) splitter.push(chunk, (frame) => frames.push(Buffer.from(frame).toString("latin1")));
  return { frames, atBoundary: splitter.atBoundary };
}

function bytewise(bytes: Uint8Array): Uint8Array[] {
  return [...bytes].map((byte) => Uint8Array.of(byte));
}

function code(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    return error instanceof MeshError ? error.code : String(error);
  }
  return "none";
}

describe("splitting JSON", () => {
  const [a, b] = [event("ADDED", pod("mine", "a")), event("DELETED", pod("foreign", 'b"}{'))];

  test("many events in one chunk and one event over many chunks give the same frames", () => {
    const bytes = Buffer.from(a + b + a);
    expect(split("json", [bytes])).toEqual({ frames: [a, b, a], atBoundary: true });
    expect(split("json", bytewise(bytes)).frames).toEqual([a, b, a]);
  });

  test("events become lines, whether joined or separated by any white space", () => {
    expect(split("json", [Buffer.from(`  ${a.trim()}${b.trim()}\r\n\n ${a}`)]).frames).toEqual([a, b, a]);
  });

  test("an event spread over lines is one frame", () => {
    const pretty = `${JSON.stringify({ type: "ADDED", object: pod("mine", "a") }, null, 2)}\n`;
    expect(split("json", [Buffer.from(pretty + a)]).frames).toEqual([pretty, a]);
  });

  test("an event passes before its newline arrives, and gets one", () => {
    const splitter = createFrameSplitter("json");
    const frames: string[] = [];
    const onFrame = (frame: Uint8Array) => frames.push(Buffer.from(frame).toString());
    splitter.push(Buffer.from(a.trim()), onFrame);
    expect(frames).toEqual([a]);
    splitter.push(Buffer.from(`\n${b}`), onFrame);
    expect(frames).toEqual([a, b]);
  });

  test("the stream is at a boundary only between events", () => {
    expect(split("json", [Buffer.from(a + b.slice(0, 10))]).atBoundary).toBe(false);
    expect(split("json", [Buffer.from(`${a} \n`)]).atBoundary).toBe(true);
    expect(split("json", []).atBoundary).toBe(true);
  });

  test("an event over the bound is too large, whole or in part", () => {
    expect(code(() => split("json", [Buffer.from(a)], 20))).toBe("CODEC_TOO_LARGE");
    expect(code(() => split("json", [Buffer.from(a.slice(0, 30))], 20))).toBe("CODEC_TOO_LARGE");
  });

  test.each(["hello", "[]", '{"type":"ADDED"]', "}"])("%s is malformed", (text) => {
    expect(code(() => split("json", [Buffer.from(text)]))).toBe("CODEC_MALFORMED");
  });
});

describe("splitting protobuf", () => {
  const [a, b] = [watchFrame("ADDED", podMessage("mine", "a")), watchFrame("DELETED", podMessage("foreign", "b"))];

  test("frames are found at any split and keep their length prefix", () => {
    const bytes = Buffer.concat([a, b, a]);
    const frames = [a, b, a].map((frame) => frame.toString("latin1"));
    expect(split("protobuf", [bytes])).toEqual({ frames, atBoundary: true });
    expect(split("protobuf", bytewise(bytes)).frames).toEqual(frames);
    expect(split("protobuf", [bytes.subarray(0, a.length + 2)])).toEqual({ frames: frames.slice(0, 1), atBoundary: false });
  });

  test("a frame over the bound is too large as soon as its length is there", () => {
    expect(code(() => split("protobuf", [a.subarray(0, 4)], 20))).toBe("CODEC_TOO_LARGE");
  });
});

describe("reading JSON events", () => {
  const read = (text: string) => readFrame("json", Buffer.from(text));

  test.each(["ADDED", "MODIFIED", "DELETED", "BOOKMARK"] as const)("%s carries its object's metadata", (type) => {
    expect(read(event(type, pod("mine", "a")))).toEqual({
      type,
      objects: [{ namespace: "mine", name: "a" }],
      unreadable: 0,
      isTable: false,
    });
  });

  test("the object may come before the type", () => {
    expect(read(JSON.stringify({ object: pod("mine", "a"), type: "ADDED" })).objects).toEqual([{ namespace: "mine", name: "a" }]);
  });

  test("a bookmark without a name is readable", () => {
    const bookmark = { kind: "Pod", metadata: { resourceVersion: "7", annotations: { "k8s.io/initial-events-end": "true" } } };
    expect(read(event("BOOKMARK", bookmark)).objects).toEqual([{ namespace: "", name: "" }]);
  });

  test("the bookmark that ends the initial events is a bookmark in every spelling of its annotation", () => {
    const text = String.raw`{"\u0074ype":"\u0042OOKMARK","object":{"metadata":{"annotations":{"k8s.io\/initial-events-end":"true"}}}}`;
    expect(read(text)).toEqual({ type: "BOOKMARK", objects: [{ namespace: "", name: "" }], unreadable: 0, isTable: false });
  });

  test("punctuation must follow a string that is split between chunks, too", () => {
    const bytes = Buffer.from('{"type":"ADDED","object":{"a":"b"c}}');
    for (let cut = 1; cut < bytes.length; cut++) {
      expect(code(() => split("json", [bytes.subarray(0, cut), bytes.subarray(cut)]))).toBe("CODEC_MALFORMED");
    }
  });

  test("an ERROR has no objects", () => {
    expect(read(event("ERROR", { kind: "Status", metadata: {}, code: 410 }))).toEqual({
      type: "ERROR",
      objects: [],
      unreadable: 0,
      isTable: false,
    });
  });

  test.each([
    ["no metadata", {}],
    ["metadata in another case", { metadata: { namespace: "mine" }, Metadata: {} }],
  ])("an object with %s is not readable", (_, object) => {
    expect(read(event("ADDED", object))).toMatchObject({ objects: [], unreadable: 1 });
  });

  test.each(["kind", "apiVersion"])("an object with the key %s twice is not readable", (key) => {
    const text = `{"type":"ADDED","object":{"${key}":"x","${key}":"y","metadata":{"namespace":"mine"}}}`;
    expect(read(text)).toMatchObject({ objects: [], unreadable: 1 });
  });

  test("a custom object with the fields Kind and APIVersion is read in a watch as it is in a list", () => {
    const object = { kind: "Foo", apiVersion: "x/v1", Kind: "x", APIVersion: 7, metadata: { namespace: "mine", name: "n" } };
    expect(read(event("ADDED", object))).toMatchObject({ objects: [{ namespace: "mine", name: "n" }], unreadable: 0 });
  });

  test("a Table event has an object for each row", () => {
    const rows = [{ object: pod("mine", "a") }, { cells: [] }, { object: pod("foreign", "b") }];
    const objects = [
      { namespace: "mine", name: "a" },
      { namespace: "foreign", name: "b" },
    ];
    expect(read(event("ADDED", { kind: "Table", apiVersion: "meta.k8s.io/v1", rows }))).toEqual({
      type: "ADDED",
      objects,
      unreadable: 1,
      isTable: true,
    });
  });

  test("a custom resource with rows, or with the kind Table, is not a Table", () => {
    const object = {
      apiVersion: "example.com/v1",
      kind: "Table",
      metadata: { namespace: "foreign", name: "t" },
      rows: [{ object: pod("mine", "a") }],
    };
    expect(read(event("ADDED", object))).toMatchObject({ objects: [{ namespace: "foreign", name: "t" }], isTable: false });
  });

  test.each([
    ["an unknown type", '{"type":"SYNC","object":{}}'],
    ["no object", '{"type":"ADDED"}'],
    ["an object that is null", '{"type":"ADDED","object":null}'],
    ["two objects", '{"type":"ADDED","object":{},"object":{}}'],
    ["an object in another case", '{"type":"ADDED","object":{},"Object":{}}'],
    ["two types", '{"type":"BOOKMARK","type":"ADDED","object":{}}'],
    ["an end inside", '{"type":"ADDED","object":{'],
    ["a Table without rows", '{"type":"ADDED","object":{"kind":"Table","apiVersion":"meta.k8s.io/v1"}}'],
    ["a Table with rows twice", '{"type":"ADDED","object":{"kind":"Table","apiVersion":"meta.k8s.io/v1","rows":[],"Rows":[]}}'],
  ])("an event with %s is malformed", (_, text) => {
    expect(code(() => read(text))).toBe("CODEC_MALFORMED");
  });
});

describe("filtering a Table event", () => {
  const table = (...names: string[]) => {
    const rows = names.map((name) => ({ cells: [name], object: pod(name.startsWith("x") ? "foreign" : "mine", name) }));
    return event("ADDED", { kind: "Table", apiVersion: "meta.k8s.io/v1", metadata: {}, columnDefinitions: [], rows });
  };

  test.each([
    [
      ["x", "a", "x", "b", "x"],
      ["a", "b"],
    ],
    [["a", "x"], ["a"]],
    [["x", "x"], []],
    [
      ["a", "b"],
      ["a", "b"],
    ],
  ])("rows %j become %j", (before, after) => {
    expect(Buffer.from(filterTableFrame(Buffer.from(table(...before)), mine)).toString()).toBe(table(...after));
  });

  test("refuses an event without a Table", () => {
    expect(code(() => filterTableFrame(Buffer.from(event("ADDED", pod("mine", "a"))), mine))).toBe("CODEC_MALFORMED");
  });
});

describe("reading protobuf events", () => {
  test.each(["ADDED", "MODIFIED", "DELETED", "BOOKMARK"] as const)("%s carries its object's metadata", (type) => {
    const frame = watchFrame(type, podMessage("mine", "a"));
    expect(readFrame("protobuf", frame)).toEqual({
      type,
      objects: [{ namespace: "mine", name: "a" }],
      unreadable: 0,
      isTable: false,
    });
  });

  test("an ERROR has no objects", () => {
    expect(readFrame("protobuf", watchFrame("ERROR", envelope("v1", "Status", [[1, [[3, "token"]]]]))).objects).toEqual([]);
  });

  test.each([
    ["without metadata", envelope("v1", "Pod", [[2, "spec"]])],
    [
      "with the namespace twice",
      envelope("v1", "Pod", [
        [
          1,
          [
            [3, "foreign"],
            [3, "mine"],
          ],
        ],
      ]),
    ],
    ["that is a Table", envelope("meta.k8s.io/v1", "Table", [[1, [[3, "mine"]]]])],
  ])("an object %s is not readable", (_, body) => {
    expect(readFrame("protobuf", watchFrame("ADDED", body))).toMatchObject({ objects: [], unreadable: 1 });
  });

  const framed = (event: Buffer) => {
    const length = Buffer.alloc(4);
    length.writeUInt32BE(event.length);
    return Buffer.concat([length, event]);
  };
  test.each([
    ["a wrong length", Buffer.concat([watchFrame("ADDED", podMessage("mine", "a")), Buffer.alloc(1)])],
    ["no bytes", Buffer.alloc(4)],
    ["an unknown type", watchFrame("SYNC", podMessage("mine", "a"))],
    ["no object", framed(message([[1, "ADDED"]]))],
    [
      "two objects",
      framed(
        message([
          [1, "ADDED"],
          [2, [[1, podMessage("mine", "a")]]],
          [2, [[1, podMessage("foreign", "b")]]],
        ]),
      ),
    ],
    ["an object without envelope", watchFrame("ADDED", message([[1, [[3, "mine"]]]]))],
    ["two objects in its envelope", watchFrame("ADDED", Buffer.concat([podMessage("mine", "a"), message([[2, []]])]))],
  ])("an event with %s is malformed", (_, frame) => {
    expect(code(() => readFrame("protobuf", frame))).toBe("CODEC_MALFORMED");
  });
});
