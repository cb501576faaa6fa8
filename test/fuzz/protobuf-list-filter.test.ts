// The protobuf list filter against a reference decoder that knows nothing of it, with exact lengths and with filler.
import { isUtf8 } from "node:buffer";
import fc from "fast-check";
import { expect, test } from "vitest";
import { MeshError } from "../../src/base/errors.ts";
import { createListFilter, elementRenamer, type ItemMeta } from "../../src/kube/codec/codec.ts";
import { cutAt, runFilter, tryFilter } from "../support/byte-chunks.ts";
import { budget } from "../support/fuzz.ts";
import {
  bytesOf,
  decode,
  decodeList,
  envelope,
  type Field,
  message,
  type WireField,
  wireMessage,
} from "../support/kube-protobuf.ts";

const SECRET = "foreign-secret";
const keep = ({ namespace }: ItemMeta) => namespace === "own";

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
  const objectMeta: Field = [1, [[1, name], ...meta, [3, mine ? "own" : SECRET]]];
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
      expect([filter.counts.kept, filter.counts.dropped]).toEqual([kept.length, items.length - kept.length]);
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

test("every truncation of a list is an error, and what came before it is no list", () => {
  fc.assert(
    fc.property(list, fc.nat(), ({ items, count, metaLast, maxHeldBytes, cuts }, at) => {
      const body = encodeList(items.map(encodeItem), count, metaLast);
      // The two empty fields behind the list may be missing: a list without them says the same.
      const short = body.subarray(0, at % (body.length - 4));
      const { emitted, error } = tryFilter(createListFilter("protobuf", keep, { maxHeldBytes }), cutAt(short, cuts));
      expect(error).toMatchObject({ code: "CODEC_TRUNCATED" });
      if (emitted.length > 0) expect(() => decodeList(emitted)).toThrow(RangeError);
    }),
    budget(),
  );
});

// Everything that the wire format allows, and what it does not: fields of any type and order, groups, longer varints than needed.
const wireField = (value: fc.Arbitrary<WireField["value"]>): fc.Arbitrary<WireField> =>
  fc.record({
    number: fc.oneof(
      { weight: 4, arbitrary: fc.constantFrom(1, 2, 3, 11) },
      { weight: 1, arbitrary: fc.integer({ min: 0, max: 5_000 }) },
    ),
    wireType: fc.oneof({ weight: 12, arbitrary: fc.constant(2) }, { weight: 1, arbitrary: fc.nat(7) }),
    value,
    padding: fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.nat(3) }),
  });
const wireText = fc.oneof(
  fc.constantFrom("own", SECRET, "", "m\u00fc").map((each) => Buffer.from(each)),
  fc.uint8Array({ maxLength: 6 }),
  fc.nat(300),
);
const wireMeta = fc.array(wireField(wireText), { maxLength: 4 });
const wireItem = fc.array(wireField(fc.oneof({ weight: 3, arbitrary: wireMeta }, { weight: 1, arbitrary: wireText })), {
  maxLength: 3,
});
const wireList = fc.array(
  fc.oneof(
    { weight: 3, arbitrary: wireItem.map((value): WireField => ({ number: 2, wireType: 2, value })) },
    { weight: 1, arbitrary: wireField(wireItem) },
  ),
  { maxLength: 5 },
);

/** The namespace as Go's decoder reads it: messages that stand there twice are merged, and the last value wins. */
function namespaceOf(item: Buffer): string {
  const meta = decode(item).flatMap(({ number, value }) => (number === 1 && value instanceof Buffer ? decode(value) : []));
  return bytesOf(meta, 3)?.toString() ?? "";
}

/** True for an object that every decoder reads the same. */
function isClean(item: Buffer): boolean {
  try {
    const fields = decode(item);
    const metas = fields.filter(({ number }) => number === 1);
    const meta = metas[0]?.value;
    if (metas.length !== 1 || !(meta instanceof Buffer) || fields.some(({ isGroup }) => isGroup)) return false;
    const inner = decode(meta);
    return [1, 3].every((number) => {
      const values = inner.filter((each) => each.number === number);
      const [value] = values;
      if (values.length > 1 || inner.some(({ isGroup }) => isGroup)) return false;
      return value === undefined || (value.value instanceof Buffer && isUtf8(value.value));
    });
  } catch {
    return false;
  }
}

test("of a list with anything on the wire only own items come out, whoever reads it, and all that are clean", () => {
  fc.assert(
    fc.property(wireList, fc.nat(200), fc.array(fc.nat(), { maxLength: 8 }), (fields, maxHeldBytes, cuts) => {
      const raw = wireMessage(fields);
      const body = envelope("v1", "PodList", raw);
      const { emitted, error } = tryFilter(createListFilter("protobuf", keep, { maxHeldBytes }), cutAt(body, cuts));
      const whole = tryFilter(createListFilter("protobuf", keep, { maxHeldBytes }), [body]);
      expect(error).toEqual(whole.error);
      if (error !== undefined) {
        expect(error).toMatchObject({ code: expect.stringMatching("CODEC_") });
        return;
      }
      expect(emitted.equals(whole.emitted) || maxHeldBytes > 0).toBe(true);
      const { items } = decodeList(emitted);
      for (const item of items) expect(namespaceOf(item)).toBe("own");
      const clean = decode(raw).flatMap(({ number, value }) =>
        number === 2 && value instanceof Buffer && isClean(value) ? [value] : [],
      );
      expect(items).toEqual(clean.filter((item) => namespaceOf(item) === "own"));
    }),
    budget(),
  );
});

test("labels are those that the reference decoder reads", () => {
  const entry = fc.tuple(fc.constantFrom("app", "tier", "constructor", ""), fc.string({ maxLength: 5 }));
  fc.assert(
    fc.property(
      fc.array(fc.array(entry, { maxLength: 4 }), { maxLength: 5 }),
      fc.array(fc.nat(), { maxLength: 8 }),
      (objects, cuts) => {
        const items = objects.map((labels) =>
          message([[1, [...labels.map(([key, value]): Field => [11, [[1, key] as const, [2, value] as const]]), [3, "own"]]]]),
        );
        const seen: unknown[] = [];
        const filter = createListFilter("protobuf", ({ labels = {} }) => seen.push(new Map(Object.entries(labels))) > 0, {
          labels: true,
        });
        runFilter(filter, cutAt(encodeList(items, null, false), cuts));
        const readable = objects.filter((labels) => new Set(labels.map(([key]) => key)).size === labels.length);
        expect(seen).toEqual(readable.map((labels) => new Map(labels)));
      },
    ),
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
          if (filter.counts.kept + filter.counts.dropped === 0) return;
          const namespaces = decodeList(result).items.map((each) =>
            bytesOf(decode(bytesOf(decode(each), 1) ?? Buffer.alloc(0)), 3)?.toString(),
          );
          expect(namespaces).toEqual(Array.from({ length: filter.counts.kept }, () => "own"));
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
