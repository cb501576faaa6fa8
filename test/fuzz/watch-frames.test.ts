// Watch streams: the same frames at any split, whatever stands between the events, and renaming there and back is nothing.
import fc from "fast-check";
import { expect, test } from "vitest";
import { MeshError } from "../../src/base/errors.ts";
import { createFrameSplitter, filterTableFrame, readFrame, renameFrame, renameObject } from "../../src/kube/codec/codec.ts";
import { cutAt } from "../support/byte-chunks.ts";
import { budget } from "../support/fuzz.ts";
import { envelope, watchFrame } from "../support/kube-protobuf.ts";

const type = fc.constantFrom("ADDED", "MODIFIED", "DELETED", "BOOKMARK");
const object = fc.record({
  metadata: fc.record({ namespace: fc.string({ unit: "grapheme" }), name: fc.string() }),
  spec: fc.jsonValue(),
});
const cuts = fc.array(fc.nat(), { maxLength: 10 });

function splitAll(encoding: "json" | "protobuf", chunks: readonly Uint8Array[]): Buffer[] {
  const splitter = createFrameSplitter(encoding);
  const frames: Buffer[] = [];
  for (const chunk of chunks) splitter.push(chunk, (frame) => frames.push(Buffer.from(frame)));
  expect(splitter.atBoundary).toBe(true);
  return frames;
}

test("JSON events come out whole and are read as JSON.parse reads them", () => {
  const event = fc.record({ type, object, pretty: fc.boolean(), gap: fc.constantFrom("", "\n", "\r\n", " \n\n ") });
  fc.assert(
    fc.property(fc.array(event, { maxLength: 5 }), cuts, (events, positions) => {
      const text = events.map(({ gap, pretty, ...event }) => JSON.stringify(event, null, pretty ? 1 : 0) + gap).join("");
      const frames = splitAll("json", cutAt(Buffer.from(text), positions));
      expect(frames.map((frame) => JSON.parse(frame.toString()))).toEqual(
        events.map(({ type, object }) => JSON.parse(JSON.stringify({ type, object }))),
      );
      for (const [index, frame] of frames.entries()) {
        const { type, object } = events[index] ?? { type: "", object: undefined };
        const readable = [object?.metadata.namespace, object?.metadata.name].every((each) => !each?.includes("\ufffd"));
        expect(frame.at(-1)).toBe(10);
        expect(readFrame("json", frame)).toEqual({
          type,
          objects: readable ? [object?.metadata] : [],
          unreadable: readable ? 0 : 1,
          isTable: false,
        });
      }
    }),
    budget(),
  );
});

test("of a stream that breaks off, in either encoding, the whole frames come out and the rest is known to be missing", () => {
  fc.assert(
    fc.property(
      fc.array(fc.record({ type, object }), { minLength: 1, maxLength: 4 }),
      fc.boolean(),
      fc.nat(),
      cuts,
      (events, isJson, at, positions) => {
        const encoding = isJson ? "json" : "protobuf";
        const whole = events.map(({ type, object }) =>
          isJson
            ? Buffer.from(`${JSON.stringify({ type, object })}\n`)
            : watchFrame(
                type,
                envelope("v1", "Pod", [
                  [1, [[1, object.metadata.name]]],
                  [2, JSON.stringify(object.spec) ?? ""],
                ]),
              ),
        );
        const body = Buffer.concat(whole);
        const end = at % body.length;
        const splitter = createFrameSplitter(encoding);
        const frames: Buffer[] = [];
        for (const chunk of cutAt(body.subarray(0, end), positions))
          splitter.push(chunk, (frame) => frames.push(Buffer.from(frame)));
        expect(frames).toEqual(whole.slice(0, frames.length));
        // A JSON event is over at its brace: of the last one only the newline may be missing.
        const missing = end - frames.reduce((sum, { length }) => sum + length, 0);
        expect(splitter.atBoundary).toBe(missing === 0 || (isJson && missing === -1));
      },
    ),
    budget(),
  );
});

test("a watch with some bytes changed gives an error or frames, the same at any split", () => {
  const edit = fc.tuple(fc.nat(), fc.oneof(fc.constantFrom(...Buffer.from('"{}[],:\\ ')), fc.integer({ min: 0, max: 255 })));
  fc.assert(
    fc.property(
      fc.array(fc.record({ type, object }), { minLength: 1, maxLength: 3 }),
      fc.boolean(),
      fc.array(edit, { maxLength: 3 }),
      cuts,
      (events, isJson, edits, positions) => {
        const encoding = isJson ? "json" : "protobuf";
        const body = Buffer.concat(
          events.map(({ type, object }) =>
            isJson
              ? Buffer.from(JSON.stringify({ type, object }))
              : watchFrame(type, envelope("v1", "Pod", [[1, [[3, object.metadata.namespace]]]])),
          ),
        );
        for (const [at, byte] of edits) body[at % body.length] = byte;
        const run = (chunks: readonly Uint8Array[]): unknown[] => {
          const seen: unknown[] = [];
          const splitter = createFrameSplitter(encoding, 100_000);
          try {
            for (const chunk of chunks)
              splitter.push(chunk, (frame) => seen.push(attempt(() => readFrame(encoding, frame, { labels: true }))));
          } catch (error) {
            seen.push(codeOf(error));
          }
          return seen;
        };
        expect(run(cutAt(body, positions))).toEqual(run([body]));
      },
    ),
    budget(),
  );
});

function attempt<T>(run: () => T): T | string {
  try {
    return run();
  } catch (error) {
    return codeOf(error);
  }
}

function codeOf(error: unknown): string {
  if (error instanceof MeshError && error.code.startsWith("CODEC_")) return error.code;
  throw error;
}

test("protobuf frames come out whole", () => {
  const event = fc.record({ type, namespace: fc.string(), name: fc.string(), spec: fc.uint8Array() });
  fc.assert(
    fc.property(fc.array(event, { maxLength: 5 }), cuts, (events, positions) => {
      const wanted = events.map(({ type, namespace, name, spec }) =>
        watchFrame(
          type,
          envelope("v1", "Pod", [
            [
              1,
              [
                [1, name],
                [3, namespace],
              ],
            ],
            [2, spec],
          ]),
        ),
      );
      const frames = splitAll("protobuf", cutAt(Buffer.concat(wanted), positions));
      expect(frames).toEqual(wanted);
      expect(frames.map((frame) => readFrame("protobuf", frame).objects[0])).toEqual(
        events.map(({ namespace, name }) => ({ namespace, name })),
      );
    }),
    budget(),
  );
});

test("a filtered Table event has the kept rows and nothing else changed", () => {
  const row = fc.record({
    cells: fc.array(fc.jsonValue(), { maxLength: 2 }),
    object: fc.record({
      metadata: fc.record({ namespace: fc.constantFrom("own", "other-subset"), name: fc.string({ unit: "binary-ascii" }) }),
    }),
  });
  fc.assert(
    fc.property(type, fc.array(row, { maxLength: 6 }), fc.nat(2), (type, rows, indent) => {
      const write = (some: typeof rows) =>
        JSON.stringify({ type, object: { kind: "Table", apiVersion: "meta.k8s.io/v1", rows: some } }, null, indent);
      const mine = rows.filter(({ object }) => object.metadata.namespace === "own");
      const frame = Buffer.from(write(rows));
      expect(readFrame("json", frame).objects).toEqual(rows.map(({ object }) => object.metadata));
      const result = Buffer.from(filterTableFrame(frame, ({ namespace }) => namespace === "own")).toString();
      expect(JSON.parse(result)).toEqual(JSON.parse(write(mine)));
      if (indent === 0) expect(result).toBe(write(mine));
    }),
    budget(),
  );
});

test("renaming there and back gives the same bytes", () => {
  const names = fc.tuple(fc.string({ minLength: 1 }), fc.string({ minLength: 1 }));
  fc.assert(
    fc.property(names, type, fc.uint8Array({ maxLength: 300 }), fc.jsonValue(), ([from, to], type, spec, value) => {
      const [there, back] = [
        { from, to },
        { from: to, to: from },
      ];
      const body = envelope("v1", "ConfigMap", [
        [
          1,
          [
            [1, from],
            [3, from],
          ],
        ],
        [2, spec],
      ]);
      expect(Buffer.from(renameObject("protobuf", renameObject("protobuf", body, there), back)).equals(body)).toBe(true);
      const frame = watchFrame(type, body);
      expect(Buffer.from(renameFrame("protobuf", renameFrame("protobuf", frame, there), back)).equals(frame)).toBe(true);
      const json = Buffer.from(JSON.stringify({ spec: value, metadata: { namespace: from, name: from } }));
      const renamed = renameObject("json", json, there);
      expect(JSON.parse(Buffer.from(renamed).toString())).toEqual({
        spec: JSON.parse(JSON.stringify(value)),
        metadata: { namespace: from, name: to },
      });
      expect(Buffer.from(renameObject("json", renamed, back)).equals(json)).toBe(true);
    }),
    budget(),
  );
});
