// The protobuf list filter against a reference decoder that knows nothing of it, with exact lengths and with filler.
import fc from "fast-check";
import { expect, test } from "vitest";
import { MeshError } from "../../src/base/errors.ts";
import { createListFilter } from "../../src/kube/codec/list-filter.ts";
import { elementRenamer } from "../../src/kube/codec/rename.ts";
import type { ItemMeta } from "../../src/kube/codec/types.ts";
import { cutAt, runFilter } from "../support/byte-chunks.ts";
import { budget } from "../support/fuzz.ts";
import { bytesOf, decode, decodeList, envelope, type Field, message } from "../support/kube-protobuf.ts";

const SECRET = "foreign-secret";
const keep = ({ namespace }: ItemMeta) => namespace === "mine";

const padding = fc.oneof(
  fc.nat(300),
  fc.constantFrom(125, 126, 127, 128, 129, 130, 16_380, 16_382, 16_384, 16_386),
  fc.integer({ min: 60_000, max: 70_000 }),
);
const item = fc.record({
  mine: fc.boolean(),
  name: fc.string({ maxLength: 10 }),
  size: padding,
  meta: fc.array(fc.tuple(fc.constantFrom(2, 4, 5, 11, 12), fc.oneof(fc.string(), fc.nat())), { maxLength: 4 }),
  metaLast: fc.boolean(),
});
type Item = typeof item extends fc.Arbitrary<infer T> ? T : never;

function encodeItem({ mine, name, size, meta, metaLast }: Item): Buffer {
  const content = (mine ? "own " : SECRET).repeat(Math.ceil(size / 4)).slice(0, size);
  const objectMeta: Field = [1, [[1, name], ...meta, [3, mine ? "mine" : SECRET]]];
  const spec: Field = [2, content];
  return message(metaLast ? [spec, objectMeta] : [objectMeta, spec]);
}

const list = fc.record({
  items: fc.array(item, { maxLength: 8 }),
  count: fc.option(fc.nat()),
  metaLast: fc.boolean(),
  maxHeldBytes: fc.oneof(fc.constant(0), fc.nat(2_000), fc.nat(100_000), fc.constant(10_000_000)),
  cuts: fc.array(fc.nat(), { maxLength: 12 }),
});

function encodeList(items: readonly Buffer[], count: number | null, metaLast: boolean): Buffer {
  const meta: Field = [1, [[2, "7"], [3, "token"], ...(count === null ? [] : [[4, count] as const])]];
  const encoded = items.map((each): Field => [2, each]);
  return envelope("v1", "PodList", metaLast ? [...encoded, meta] : [meta, ...encoded]);
}

test("the client decodes the kept items, byte for byte, and no foreign byte is in the body", () => {
  fc.assert(
    fc.property(list, ({ items, count, metaLast, maxHeldBytes, cuts }) => {
      const body = encodeList(items.map(encodeItem), count, metaLast);
      const kept = items.filter(({ mine }) => mine);
      const wanted = encodeList(kept.map(encodeItem), null, metaLast);
      const filter = createListFilter("protobuf", keep, { maxHeldBytes });
      const result = runFilter(filter, cutAt(body, cuts));
      expect([filter.kept, filter.dropped]).toEqual([kept.length, items.length - kept.length]);
      expect(decodeList(result)).toEqual(decodeList(wanted));
      expect(result.includes(SECRET)).toBe(false);
      if (maxHeldBytes === 10_000_000) expect(result.equals(wanted)).toBe(true);
      expect(result.length).toBeLessThanOrEqual(body.length);
    }),
    budget(),
  );
});

test("an item that is renamed to something shorter leaves the list whole, exact or with filler", () => {
  const from = "lock---canary";
  fc.assert(
    fc.property(list, fc.array(fc.boolean()), ({ items, count, metaLast, maxHeldBytes, cuts }, locks) => {
      const named = (name: string) => items.map((each, index) => (locks[index] ? { ...each, name } : each));
      const body = encodeList(named(from).map(encodeItem), count, metaLast);
      const kept = named("lock").filter(({ mine }) => mine);
      const wanted = encodeList(kept.map(encodeItem), null, metaLast);
      const rewrite = elementRenamer("protobuf", { from, to: "lock" });
      const result = runFilter(createListFilter("protobuf", keep, { maxHeldBytes, rewrite }), cutAt(body, cuts));
      expect(decodeList(result)).toEqual(decodeList(wanted));
      if (maxHeldBytes === 10_000_000) expect(result.equals(wanted)).toBe(true);
    }),
    budget(),
  );
});

test("every truncation of a list is noticed at its end", () => {
  fc.assert(
    fc.property(list, fc.nat(), ({ items, count, metaLast, maxHeldBytes, cuts }, at) => {
      const body = encodeList(items.map(encodeItem), count, metaLast);
      // The two empty fields behind the list may be missing: a list without them says the same.
      const short = body.subarray(0, at % (body.length - 4));
      const run = () => runFilter(createListFilter("protobuf", keep, { maxHeldBytes }), cutAt(short, cuts));
      expect(run).toThrow(expect.objectContaining({ code: "CODEC_TRUNCATED" }));
    }),
    budget(),
  );
});

test("a list with some bytes changed gives an error, or shows no object that says it is foreign", () => {
  fc.assert(
    fc.property(
      list,
      fc.array(fc.tuple(fc.nat(), fc.integer({ min: 0, max: 255 })), { minLength: 1, maxLength: 3 }),
      ({ items, cuts, maxHeldBytes }, edits) => {
        const body = encodeList(items.map(encodeItem), 5, false);
        for (const [at, byte] of edits) body[at % Math.min(body.length, 400)] = byte;
        const filter = createListFilter("protobuf", keep, { maxHeldBytes });
        try {
          const result = runFilter(filter, cutAt(body, cuts));
          if (filter.kept + filter.dropped === 0) return;
          const namespaces = decodeList(result).items.map((each) =>
            bytesOf(decode(bytesOf(decode(each), 1) ?? Buffer.alloc(0)), 3)?.toString(),
          );
          expect(namespaces).toEqual(Array.from({ length: filter.kept }, () => "mine"));
        } catch (error) {
          if (!(error instanceof MeshError && error.code.startsWith("CODEC_"))) throw error;
        }
      },
    ),
    budget(),
  );
});

test("garbage ends with an error and nothing gets out", () => {
  fc.assert(
    fc.property(
      fc.uint8Array({ maxLength: 300 }),
      fc.boolean(),
      fc.array(fc.nat(), { maxLength: 5 }),
      (bytes, prefixed, cuts) => {
        const body = prefixed ? Buffer.concat([envelope("v1", "PodList", []).subarray(0, 19), bytes]) : Buffer.from(bytes);
        const filter = createListFilter("protobuf", () => false);
        try {
          expect(runFilter(filter, cutAt(body, cuts)).length).toBeLessThanOrEqual(body.length);
          expect(prefixed).toBe(true);
        } catch (error) {
          if (!(error instanceof MeshError && error.code.startsWith("CODEC_"))) throw error;
        }
      },
    ),
    budget(),
  );
});
