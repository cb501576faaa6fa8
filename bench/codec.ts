// `node bench/codec.ts`: measures the list filters and the frame readers, in MB/s of upstream bytes. The input is a list of
// 10,000 ConfigMaps of about 1 KB in chunks of three sizes. The filter keeps 1 object of 10: plain, with labels read, and with
// managedFields stripped. The best of many rounds counts, because other work on the machine only adds time.

import {
  createFrameSplitter,
  createListFilter,
  type Emit,
  type Encoding,
  elementStripper,
  type ItemMeta,
  type ListFilterOptions,
  type ReadOptions,
  readFrame,
  stripFrame,
} from "../src/kube/codec/codec.ts";
import { envelope, type Field, message, watchFrame } from "../test/support/kube-protobuf.ts";

const ITEMS = 10_000;
const ROUNDS = 40;
const CHUNK_SIZES = [1_400, 16_384, 65_536];
const keep = ({ namespace }: ItemMeta) => namespace === "ns-3";

const managedFields = [
  {
    manager: "kubectl",
    operation: "Update",
    apiVersion: "v1",
    time: "2025-01-01T00:00:00Z",
    fieldsType: "FieldsV1",
    fieldsV1: { "f:data": { ".": {}, "f:a": {}, "f:b": {} }, "f:metadata": { "f:labels": { ".": {}, "f:app": {} } } },
  },
];
const uid = "6b0f7c52-2f6d-4b57-9e3c-4c2ad0b1a0c1";
const data = { a: "x".repeat(150), b: "y".repeat(300), c: "short", "config.yaml": "key: value\nother: [1, 2, 3]\n".repeat(4) };

function jsonItem(index: number): object {
  const labels = { app: "demo", tier: "backend" };
  const times = { resourceVersion: String(1_000 + index), creationTimestamp: "2025-01-01T00:00:00Z" };
  return { metadata: { name: `config-${index}`, namespace: `ns-${index % 10}`, uid, ...times, labels, managedFields }, data };
}

function protobufItem(index: number): Buffer {
  const entries = (number: number, map: object): Field[] =>
    Object.entries(map).map(
      ([key, value]): Field => [
        number,
        [
          [1, key],
          [2, String(value)],
        ],
      ],
    );
  const manager: Field = [
    17,
    [
      [1, "kubectl"],
      [2, "Update"],
      [3, "v1"],
      [6, "FieldsV1"],
      [7, [[1, JSON.stringify(managedFields[0]?.fieldsV1)]]],
    ],
  ];
  const names: Field[] = [
    [1, `config-${index}`],
    [2, ""],
    [3, `ns-${index % 10}`],
    [4, ""],
    [5, uid],
    [6, String(1_000 + index)],
    [7, 0],
    [
      8,
      [
        [1, 1_735_689_600],
        [2, 0],
      ],
    ],
  ];
  return message([[1, [...names, ...entries(11, { app: "demo", tier: "backend" }), manager]], ...entries(2, data)]);
}

const indices = Array.from({ length: ITEMS }, (_, index) => index);
const objects = indices.map(jsonItem);
const messages = indices.map(protobufItem);
const lists: Record<Encoding, Buffer> = {
  json: Buffer.from(
    `${JSON.stringify({ kind: "ConfigMapList", apiVersion: "v1", metadata: { resourceVersion: "1" }, items: objects })}\n`,
  ),
  protobuf: envelope("v1", "ConfigMapList", [[1, [[2, "1"]]], ...messages.map((each): Field => [2, each])]),
};
const watches: Record<Encoding, Buffer> = {
  json: Buffer.from(objects.map((object) => `${JSON.stringify({ type: "ADDED", object })}\n`).join("")),
  protobuf: Buffer.concat(messages.map((each) => watchFrame("ADDED", envelope("v1", "ConfigMap", each)))),
};

function filterList(encoding: Encoding, chunks: readonly Buffer[], options?: ListFilterOptions): void {
  const filter = createListFilter(encoding, keep, options);
  let emitted = 0;
  const emit: Emit = (slice) => {
    emitted += slice.length;
  };
  for (const chunk of chunks) filter.push(chunk, emit);
  filter.end(emit);
  if (filter.counts.kept !== ITEMS / 10 || emitted === 0) throw new Error(`kept ${filter.counts.kept}`);
}

function stripList(encoding: Encoding, chunks: readonly Buffer[]): void {
  const filter = createListFilter(encoding, () => true, { rewrite: elementStripper(encoding), keepsAll: true });
  for (const chunk of chunks) filter.push(chunk, () => undefined);
  filter.end(() => undefined);
}

function readWatch(encoding: Encoding, chunks: readonly Buffer[], options?: ReadOptions): void {
  let kept = 0;
  eachFrame(encoding, chunks, (frame) => {
    if (readFrame(encoding, frame, options).objects.every(keep)) kept++;
  });
  if (kept !== ITEMS / 10) throw new Error(`kept ${kept}`);
}

function eachFrame(encoding: Encoding, chunks: readonly Buffer[], onFrame: (frame: Uint8Array) => void): void {
  const splitter = createFrameSplitter(encoding);
  for (const chunk of chunks) splitter.push(chunk, onFrame);
}

function measure(name: string, body: Buffer, run: (chunks: readonly Buffer[]) => void): void {
  const rates = CHUNK_SIZES.map((size) => {
    const chunks = Array.from({ length: Math.ceil(body.length / size) }, (_, index) =>
      body.subarray(index * size, (index + 1) * size),
    );
    for (let round = 0; round < 5; round++) run(chunks);
    let best = Number.POSITIVE_INFINITY;
    for (let round = 0; round < ROUNDS; round++) {
      const start = performance.now();
      run(chunks);
      best = Math.min(best, performance.now() - start);
    }
    return `${(body.length / 1_000 / best).toFixed(0)} MB/s`.padStart(11);
  });
  console.log(`${name.padEnd(34)}${`${(body.length / 1e6).toFixed(1)} MB`.padStart(8)}${rates.join("")}`);
}

console.log(`${"chunks of".padEnd(42)}${CHUNK_SIZES.map((size) => `${size} B`.padStart(11)).join("")}`);
for (const encoding of ["json", "protobuf"] as const) {
  measure(`list, ${encoding}`, lists[encoding], (chunks) => filterList(encoding, chunks));
  measure(`list, ${encoding}, labels`, lists[encoding], (chunks) => filterList(encoding, chunks, { labels: true }));
  measure(`list, ${encoding}, stripped`, lists[encoding], (chunks) => stripList(encoding, chunks));
}
measure("list, protobuf, filler path", lists.protobuf, (chunks) => filterList("protobuf", chunks, { maxHeldBytes: 0 }));
for (const encoding of ["json", "protobuf"] as const) {
  measure(`watch, ${encoding}`, watches[encoding], (chunks) => readWatch(encoding, chunks));
  measure(`watch, ${encoding}, labels`, watches[encoding], (chunks) => readWatch(encoding, chunks, { labels: true }));
  measure(`watch, ${encoding}, stripped`, watches[encoding], (chunks) =>
    eachFrame(encoding, chunks, (frame) => stripFrame(encoding, frame)),
  );
}
