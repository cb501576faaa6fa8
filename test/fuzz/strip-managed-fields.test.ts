// Stripping managedFields against decoding, deleting and encoding: nothing else changes, in any encoding and place.
import fc from "fast-check";
import { expect, test } from "vitest";
import { createListFilter, elementStripper, stripFrame, stripObject } from "../../src/kube/codec/codec.ts";
import { cutAt, runFilter } from "../support/byte-chunks.ts";
import { budget } from "../support/fuzz.ts";
import { decodeList, envelope, type Field, message, watchFrame, wireMessage } from "../support/kube-protobuf.ts";

type Json = Record<string, unknown>;

const members = fc.dictionary(
  fc.oneof(fc.constantFrom("metadata", "items", "rows", "spec", "kind2", "managedFields"), fc.string()),
  fc.oneof(fc.jsonValue(), fc.record({ managedFields: fc.jsonValue(), metadata: fc.record({ managedFields: fc.jsonValue() }) })),
  { maxKeys: 4 },
);
const metadata = fc
  .tuple(members, fc.option(fc.jsonValue(), { nil: undefined }), members)
  .map(([before, managedFields, after]): Json => {
    // An item whose name is no text cannot be read: it would pass a stream as it is.
    const { managedFields: _b, name: _n, ...first } = before;
    const { managedFields: _a, name: _m, ...last } = after;
    return { ...first, ...(managedFields === undefined ? {} : { managedFields }), ...last };
  });
const object = fc.tuple(members, metadata, members).map(([before, metadata, after]): Json => {
  const { items: _i, rows: _r, ...first } = before;
  return { ...first, metadata, ...after, metadata2: { managedFields: [] } };
});
const isList = fc.boolean();

function without(value: unknown): unknown {
  const { metadata, ...rest } = value as Json;
  if (typeof metadata !== "object" || metadata === null || Array.isArray(metadata)) return value;
  const { managedFields: _, ...kept } = metadata as Json;
  // As the object was written: the place of metadata does not change.
  return Object.fromEntries(
    Object.entries({ ...(value as Json) }).map(([key, each]) => (key === "metadata" ? [key, kept] : [key, each])),
  ) satisfies Json as typeof rest;
}

function normal(text: string): unknown {
  return JSON.parse(text);
}

/** True if `part` is `whole` with bytes left out. */
function isLeftOver(part: Uint8Array, whole: Uint8Array): boolean {
  let at = 0;
  for (const byte of part) {
    while (at < whole.length && whole[at] !== byte) at++;
    if (at++ >= whole.length) return false;
  }
  return true;
}

const indent = fc.nat(2);

test("a JSON object loses its managedFields and nothing else", () => {
  fc.assert(
    fc.property(object, indent, (object, indent) => {
      const body = Buffer.from(JSON.stringify(object, null, indent));
      const result = stripObject("json", body);
      expect(normal(Buffer.from(result).toString())).toEqual(normal(JSON.stringify(without(object))));
      if (indent === 0) expect(Buffer.from(result).toString()).toBe(JSON.stringify(without(object)));
      expect(isLeftOver(result, body)).toBe(true);
      const frame = Buffer.from(`{"type":"ADDED","object":${body.toString()}}\n`);
      expect(Buffer.from(stripFrame("json", frame)).toString()).toBe(
        `{"type":"ADDED","object":${Buffer.from(result).toString()}}\n`,
      );
    }),
    budget(),
  );
});

test("so do the items of a JSON list and the objects of a Table's rows, whole and as a stream at any split", () => {
  fc.assert(
    fc.property(
      fc.array(object, { maxLength: 4 }),
      isList,
      indent,
      fc.array(fc.nat(), { maxLength: 8 }),
      (objects, isList, indent, cuts) => {
        const write = (some: readonly unknown[]) =>
          isList
            ? { apiVersion: "v1", items: some, kind: "PodList" }
            : { kind: "Table", apiVersion: "meta.k8s.io/v1", rows: some.map((object) => ({ cells: [1], object })) };
        const body = Buffer.from(JSON.stringify(write(objects), null, indent));
        const wanted = normal(JSON.stringify(write(objects.map(without))));
        const whole = Buffer.from(stripObject("json", body));
        expect(normal(whole.toString())).toEqual(wanted);
        const rewrite = elementStripper("json");
        const filter = createListFilter("json", () => true, { rewrite, keepsAll: true });
        expect(runFilter(filter, cutAt(body, cuts)).equals(whole)).toBe(true);
      },
    ),
    budget(),
  );
});

test("text that is no JSON, or breaks off, comes back or is made shorter, never an error", () => {
  fc.assert(
    fc.property(object, fc.nat(), fc.nat(), fc.integer({ min: 0, max: 255 }), (object, at, end, byte) => {
      const body = Buffer.from(JSON.stringify(object));
      body[at % body.length] = byte;
      const short = body.subarray(0, end % (2 * body.length));
      expect(isLeftOver(stripObject("json", short), short)).toBe(true);
      expect(isLeftOver(stripFrame("json", short), short)).toBe(true);
    }),
    budget(),
  );
});

const field = fc.tuple(
  fc.constantFrom(1, 2, 3, 5, 11, 16, 18, 300),
  fc.oneof(fc.string(), fc.nat(), fc.constant("x".repeat(130))),
) as fc.Arbitrary<Field>;
const managed = fc.oneof(fc.nat(3), fc.constantFrom(100, 121, 122, 128, 16_300)).map((size): Field => [17, "m".repeat(size)]);
const message17 = fc.record({
  before: fc.array(field, { maxLength: 3 }),
  managed: fc.array(managed, { maxLength: 2 }),
  after: fc.array(field, { maxLength: 3 }),
  rest: fc.array(field, { maxLength: 3 }),
});
type Message17 = typeof message17 extends fc.Arbitrary<infer T> ? T : never;

function encode({ before, managed, after, rest }: Message17, stripped: boolean): Buffer {
  const others = rest.filter(([number]) => number !== 1);
  return message([...others, [1, [...before, ...(stripped ? [] : managed), ...after]], [2, [[1, [[17, "of a template"]]]]]]);
}

test("protobuf objects, items and events lose field 17 of their metadata and nothing else, with all lengths right", () => {
  fc.assert(
    fc.property(
      fc.array(message17, { maxLength: 4 }),
      fc.nat(100_000),
      fc.array(fc.nat(), { maxLength: 8 }),
      (objects, maxHeldBytes, cuts) => {
        for (const each of objects) {
          const body = (stripped: boolean) => envelope("v1", "Pod", encode(each, stripped));
          expect(Buffer.from(stripObject("protobuf", body(false))).equals(body(true))).toBe(true);
          expect(
            Buffer.from(stripFrame("protobuf", watchFrame("ADDED", body(false)))).equals(watchFrame("ADDED", body(true))),
          ).toBe(true);
        }
        const list = (stripped: boolean) =>
          envelope("v1", "PodList", [[1, [[2, "7"]]], ...objects.map((each): Field => [2, encode(each, stripped)])]);
        expect(Buffer.from(stripObject("protobuf", list(false))).equals(list(true))).toBe(true);
        const filter = createListFilter("protobuf", () => true, {
          rewrite: elementStripper("protobuf"),
          keepsAll: true,
          maxHeldBytes,
        });
        const unreadable = objects.filter(({ before, after }) =>
          [1, 3].some(
            (number) =>
              [...before, ...after].filter((each) => each[0] === number).length > 1 ||
              [...before, ...after].some((each) => each[0] === number && typeof each[1] === "number"),
          ),
        );
        const streamed = decodeList(runFilter(filter, cutAt(list(false), cuts)));
        const expected = envelope("v1", "PodList", [
          [1, [[2, "7"]]],
          ...objects.map((each): Field => [2, encode(each, !unreadable.includes(each))]),
        ]);
        expect(streamed).toEqual(decodeList(expected));
      },
    ),
    budget(),
  );
});

test("protobuf with longer varints than needed keeps them where nothing is cut", () => {
  fc.assert(
    fc.property(fc.nat(3), fc.nat(3), fc.boolean(), (outer, inner, hasManaged) => {
      const raw = (stripped: boolean) =>
        wireMessage([
          { number: 2, wireType: 2, value: Buffer.from("spec"), padding: inner },
          {
            number: 1,
            wireType: 2,
            padding: stripped && hasManaged ? 0 : outer,
            value: [
              { number: 3, wireType: 2, value: Buffer.from("own"), padding: inner },
              ...(hasManaged && !stripped ? [{ number: 17, wireType: 2, value: Buffer.from("m"), padding: inner }] : []),
            ],
          },
        ]);
      expect(
        Buffer.from(stripObject("protobuf", envelope("v1", "Pod", raw(false)))).equals(envelope("v1", "Pod", raw(true))),
      ).toBe(true);
    }),
    budget(500),
  );
});
