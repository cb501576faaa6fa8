import { describe, expect, test } from "vitest";
import { runFilter } from "../../../test/support/byte-chunks.ts";
import { envelope, type Field, message, watchFrame } from "../../../test/support/kube-protobuf.ts";
import { createListFilter, type Encoding, filterTableFrame, type ItemMeta, readFrame, readObjectMeta } from "./codec.ts";

const LABELS = { labels: true };

const entry = (key: string, value: string): Field => [11, [[1, key] as const, [2, value] as const]];

function protobufPod(labels: readonly Field[]): Buffer {
  return message([
    [2, "spec"],
    [1, [...labels, [1, "a"], [3, "mine"]]],
  ]);
}

/**
 * The metadata that the readers find in an object with this metadata, in every place where an object may be;
 * undefined if it is unreadable.
 */
function readEverywhere(encoding: Encoding, object: string | Buffer): (ItemMeta | undefined)[] {
  if (typeof object !== "string") {
    const list = envelope("v1", "PodList", [[2, object]]);
    return [
      single("protobuf", envelope("v1", "Pod", object)),
      listed("protobuf", list),
      framed("protobuf", watchFrame("ADDED", envelope("v1", "Pod", object))),
    ];
  }
  const table = `{"type":"ADDED","object":{"kind":"Table","apiVersion":"meta.k8s.io/v1","rows":[{"object":${object}}]}}`;
  return [
    single(encoding, Buffer.from(object)),
    listed(encoding, Buffer.from(`{"items":[${object}]}`)),
    listed(encoding, Buffer.from(`{"rows":[{"cells":[],"object":${object}}]}`)),
    framed(encoding, Buffer.from(`{"type":"ADDED","object":${object}}`)),
    framed(encoding, Buffer.from(table)),
    rowOf(Buffer.from(table)),
  ];
}

function single(encoding: Encoding, body: Buffer): ItemMeta | undefined {
  try {
    return readObjectMeta(encoding, body, LABELS);
  } catch {
    return undefined;
  }
}

function listed(encoding: Encoding, body: Buffer): ItemMeta | undefined {
  const seen: ItemMeta[] = [];
  const keep = (meta: ItemMeta) => seen.push(meta) > 0;
  runFilter(
    createListFilter(encoding, keep, LABELS),
    [...body].map((byte) => Uint8Array.of(byte)),
  );
  runFilter(createListFilter(encoding, keep, LABELS), [body]);
  expect(seen[1]).toEqual(seen[0]);
  return seen[0];
}

function framed(encoding: Encoding, frame: Buffer): ItemMeta | undefined {
  return readFrame(encoding, frame, LABELS).objects[0];
}

function rowOf(frame: Buffer): ItemMeta | undefined {
  let seen: ItemMeta | undefined;
  filterTableFrame(
    frame,
    (meta) => {
      seen = meta;
      return true;
    },
    LABELS,
  );
  return seen;
}

describe("requested labels", () => {
  test.each([
    ["none", '"name":"a","namespace":"mine"', {}],
    ["null", '"labels":null,"name":"a","namespace":"mine"', {}],
    ["an empty map", '"name":"a","labels":{},"namespace":"mine"', {}],
    ["some", '"labels":{"app":"x","tier/z":""},"name":"a","namespace":"mine"', { app: "x", "tier/z": "" }],
    ["some behind the name", '"name":"a","namespace":"mine","labels" : { "app" : "x" }', { app: "x" }],
    ["escaped ones", String.raw`"name":"a","namespace":"mine","l\u0061bels":{"\u0061pp":"\u0078\"}{"}`, { app: 'x"}{' }],
    ["keys that differ by case", '"labels":{"app":"x","App":"y"},"name":"a","namespace":"mine"', { app: "x", App: "y" }],
    [
      "names that objects have",
      '"labels":{"constructor":"x","__proto__":"y"},"name":"a","namespace":"mine"',
      JSON.parse('{"constructor":"x","__proto__":"y"}'),
    ],
    [
      "annotations with labels inside",
      '"annotations":{"labels":"{}"},"labels":{"a":"b"},"name":"a","namespace":"mine"',
      { a: "b" },
    ],
  ])("JSON: %s", (_, metadata, labels: Record<string, string>) => {
    for (const meta of readEverywhere(
      "json",
      `{"spec":{"metadata":{"labels":{"app":"decoy"}}},"metadata":{${metadata}},"labels":{"decoy":""}}`,
    )) {
      expect(meta).toMatchObject({ namespace: "mine", name: "a" });
      expect(Object.entries(meta?.labels ?? {})).toEqual(Object.entries(labels));
      expect("toString" in (meta?.labels ?? {})).toBe(false);
    }
  });

  test.each([
    ["labels twice", '"labels":{"a":"b"},"labels":{"a":"b"}'],
    ["labels in another case", '"labels":{"a":"b"},"Labels":{"a":"c"}'],
    ["one label twice", '"labels":{"a":"b","a":"b"}'],
    ["one label twice, once escaped", String.raw`"labels":{"a":"b","\u0061":"c"}`],
    ["a label that is a number", '"labels":{"a":1}'],
    ["a label that is null", '"labels":{"a":null}'],
    ["a lone surrogate in a key", String.raw`"labels":{"\ud800":"b"}`],
    ["a lone surrogate in a value", String.raw`"labels":{"a":"\ud800"}`],
    ["labels that are a list", '"labels":["a"]'],
    ["labels that are a string", '"labels":"null"'],
  ])("JSON: an object with %s cannot be read", (_, labels) => {
    expect(new Set(readEverywhere("json", `{"metadata":{"namespace":"mine",${labels},"name":"a"}}`))).toEqual(
      new Set([undefined]),
    );
  });

  test.each([
    ["none", [], {}],
    ["some", [entry("app", "x"), entry("b", "ü")], { app: "x", b: "ü" }],
    ["an entry without value", [[11, [[1, "a"]]]] satisfies Field[], { a: "" }],
    ["an entry without key", [[11, [[2, "a"]]]] satisfies Field[], { "": "a" }],
    ["an entry that is empty", [[11, ""]] satisfies Field[], { "": "" }],
    [
      "an entry with its value first",
      [
        [
          11,
          [
            [2, "x"],
            [1, "a"],
          ],
        ],
      ] satisfies Field[],
      { a: "x" },
    ],
    [
      "an entry with an unknown field",
      [
        [
          11,
          [
            [2, "x"],
            [1, "a"],
            [3, 9],
          ],
        ],
      ] satisfies Field[],
      { a: "x" },
    ],
    [
      "annotations beside them",
      [
        [
          12,
          [
            [1, "app"],
            [2, "y"],
          ],
        ],
        entry("app", "x"),
      ] satisfies Field[],
      { app: "x" },
    ],
    ["names that objects have", [entry("constructor", "x")], { constructor: "x" }],
  ])("protobuf: %s", (_, fields, labels: Record<string, string>) => {
    for (const meta of readEverywhere("protobuf", protobufPod(fields))) {
      expect(meta).toMatchObject({ namespace: "mine", name: "a" });
      expect(Object.entries(meta?.labels ?? {})).toEqual(Object.entries(labels));
      expect("toString" in (meta?.labels ?? {})).toBe(false);
    }
  });

  test.each([
    ["one label twice", [entry("a", "b"), entry("a", "b")]],
    [
      "two keys in an entry",
      [
        [
          11,
          [
            [1, "a"],
            [1, "b"],
          ],
        ],
      ] satisfies Field[],
    ],
    [
      "two values in an entry",
      [
        [
          11,
          [
            [1, "a"],
            [2, "b"],
            [2, "c"],
          ],
        ],
      ] satisfies Field[],
    ],
    ["a number for a key", [[11, [[1, 7]]]] satisfies Field[]],
    ["a number for the labels", [[11, 7]] satisfies Field[]],
    ["an entry that ends early", [[11, Buffer.from([0x0a, 9, 0x61])]] satisfies Field[]],
    ["bytes that are no UTF-8", [[11, [[1, Buffer.from([0xff])]]]] satisfies Field[]],
  ])("protobuf: an object with %s cannot be read", (_, fields) => {
    expect(new Set(readEverywhere("protobuf", protobufPod(fields)))).toEqual(new Set([undefined]));
  });

  test("are absent and cannot make an object unreadable unless they are requested", () => {
    const meta = readObjectMeta("json", Buffer.from('{"metadata":{"namespace":"mine","labels":{"a":1},"Labels":{}}}'));
    expect(meta).toStrictEqual({ namespace: "mine", name: "" });
    expect(
      readFrame("protobuf", watchFrame("ADDED", envelope("v1", "Pod", protobufPod([entry("a", "b"), entry("a", "c")])))).objects,
    ).toStrictEqual([{ namespace: "mine", name: "a" }]);
  });
});
