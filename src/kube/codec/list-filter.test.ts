// What a list filter of either encoding does with the list's own metadata.
import { describe, expect, test } from "vitest";
import { envelope, type Field } from "../../../test/support/kube-protobuf.ts";
import { createListFilter, type Encoding } from "./codec.ts";

const JSON_META = { resourceVersion: "7", shardInfo: { selector: "x" }, continue: "t" };
const json = (list: object) => Buffer.from(JSON.stringify(list));
const protobuf = (meta: Field) => envelope("v1", "PodList", [meta, [2, [[1, [[1, "a"]]]]]]);
const LISTS: readonly (readonly [string, Encoding, Buffer])[] = [
  ["JSON, metadata first", "json", json({ kind: "List", metadata: JSON_META, items: [{ metadata: { name: "a" } }] })],
  ["JSON, metadata last", "json", json({ items: [{ metadata: { name: "a" } }], kind: "List", metadata: JSON_META })],
  [
    "protobuf",
    "protobuf",
    protobuf([
      1,
      [
        [2, "7"],
        [3, "t"],
        [5, [[1, "x"]]],
      ],
    ]),
  ],
];
const WITHOUT: readonly Buffer[] = [
  json({ kind: "List", metadata: { resourceVersion: "7", continue: "t" }, items: [{ metadata: { name: "a" } }] }),
  json({ items: [{ metadata: { name: "a" } }], kind: "List", metadata: { resourceVersion: "7", continue: "t" } }),
  protobuf([
    1,
    [
      [2, "7"],
      [3, "t"],
    ],
  ]),
];

function run(encoding: Encoding, body: Buffer, splitAt: number, cutShardInfo = false, keepsAll = false) {
  const versions: (bigint | undefined)[] = [];
  const out: Uint8Array[] = [];
  const filter = createListFilter(encoding, () => true, {
    cutShardInfo,
    keepsAll,
    onVersion: (version) => versions.push(version),
  });
  const emit = (slice: Uint8Array) => void out.push(Buffer.from(slice));
  filter.push(body.subarray(0, splitAt), emit);
  filter.push(body.subarray(splitAt), emit);
  filter.end(emit);
  return { versions, bytes: Buffer.concat(out) };
}

describe.each(LISTS.map((list, index) => [...list, WITHOUT[index] ?? Buffer.alloc(0)] as const))(
  "%s",
  (_, encoding, body, without) => {
    test("its version is told once, wherever the body is split", () => {
      for (let at = 0; at <= body.length; at++) expect(run(encoding, body, at).versions).toEqual([7n]);
    });

    test("shardInfo stays, or is cut on request, wherever the body is split", () => {
      for (let at = 0; at <= body.length; at++) {
        expect(run(encoding, body, at).bytes.equals(body)).toBe(true);
        for (const keepsAll of [false, true]) expect(run(encoding, body, at, true, keepsAll).bytes.equals(without)).toBe(true);
      }
    });
  },
);

test("a list without a version says so at its end, and a Status says nothing", () => {
  expect(run("json", json({ items: [], metadata: {} }), 3).versions).toEqual([undefined]);
  expect(run("protobuf", envelope("v1", "PodList", []), 3).versions).toEqual([undefined]);
  expect(run("json", json({ kind: "Status", apiVersion: "v1", metadata: {} }), 3).versions).toEqual([]);
  expect(run("protobuf", envelope("v1", "Status", [[2, "Failure"]]), 3).versions).toEqual([]);
});
