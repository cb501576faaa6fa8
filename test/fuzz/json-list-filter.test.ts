// The JSON list filter against JSON.parse: whatever the list holds, however it is written and wherever it is cut, what comes
// out is what a client that parses everything and then filters would have.
import fc from "fast-check";
import { expect, test } from "vitest";
import { MeshError } from "../../src/base/errors.ts";
import { createListFilter, type ItemMeta } from "../../src/kube/codec/codec.ts";
import { cutAt, runFilter, tryFilter } from "../support/byte-chunks.ts";
import { budget } from "../support/fuzz.ts";

const keep = ({ namespace }: ItemMeta) => namespace === "own" || namespace === "m\u00fc\ud83d\ude00";

type Members = readonly (readonly [string, unknown])[];

// Objects are lists of members, so that the order of keys is free and keys may be twice.
class Text {
  readonly members: Members;
  constructor(members: Members) {
    this.members = members;
  }
}

const KEYS = ["metadata", "items", "rows", "namespace", "name", "object", "kind", "Metadata", 'a"b\\', "\u00fc", ""];
const text = fc.oneof(
  fc.string({ unit: "grapheme", maxLength: 8 }),
  fc.constantFrom("own", "other-subset", '"}],{"metadata":{"namespace":"own"}}', "\\", '\\"', "m\u00fc\ud83d\ude00"),
  // Long enough that an item straddles chunks and windows.
  fc.constantFrom("x".repeat(1_500), '\\"}'.repeat(700), "\ud83d\ude00".repeat(900)),
);
const nested = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small" },
    text,
    fc.integer(),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.constantFrom(null, true, false),
    fc.array(tie("value"), { maxLength: 3 }),
    fc.array(fc.tuple(fc.constantFrom(...KEYS), tie("value")), { maxLength: 3 }).map((members) => new Text(members)),
  ),
})).value;

const others = fc.array(
  fc.tuple(
    fc.oneof(
      fc.constantFrom("spec", "data", "status"),
      text.map((key) => `x${key}`),
    ),
    nested,
  ),
  { maxLength: 3 },
);
const metadata = fc
  .tuple(others, fc.constantFrom("own", "other-subset", "min", "mine2", "", "m\u00fc\ud83d\ude00"), text, fc.nat(2))
  .map(([extra, namespace, name, sort]) => shuffled([...extra, ["namespace", namespace], ["name", name]], sort));
const item = fc.oneof(
  {
    weight: 8,
    arbitrary: fc
      .tuple(others, metadata, fc.nat(5))
      .map(([extra, meta, sort]) => shuffled([...extra, ["metadata", new Text(meta)]], sort)),
  },
  { weight: 1, arbitrary: others },
  // Keys twice and in another case.
  {
    weight: 1,
    arbitrary: fc.array(
      fc.tuple(
        fc.constantFrom("metadata", "Metadata", "METADATA"),
        metadata.map((meta) => new Text(meta)),
      ),
      { maxLength: 3 },
    ),
  },
  {
    weight: 1,
    arbitrary: fc
      .array(fc.tuple(fc.constantFrom("namespace", "nameSpace", "name"), text), { maxLength: 3 })
      .map((meta): Members => [["metadata", new Text(meta)]]),
  },
);

function shuffled(members: Members, sort: number): Members {
  return sort === 0 ? members : sort === 1 ? members.toReversed() : members.toSorted(([a], [b]) => (a < b ? -1 : 1));
}

interface Style {
  readonly spaces: readonly string[];
  readonly escaping: boolean;
}
const style = fc.record<Style>({
  spaces: fc.oneof(fc.constant([""]), fc.array(fc.constantFrom("", " ", "\n  ", "\t", "\r\n"), { minLength: 1, maxLength: 7 })),
  escaping: fc.boolean(),
});

function write(value: unknown, { spaces, escaping }: Style): string {
  let turn = 0;
  const space = () => spaces[turn++ % spaces.length] ?? "";
  const string = (value: string) =>
    escaping && turn % 3 === 0 ? `"${[...value].map(escaped).join("")}"` : JSON.stringify(value);
  const any = (value: unknown): string => {
    if (typeof value === "string") return string(value);
    if (Array.isArray(value))
      return `[${value.map((each) => space() + any(each) + space()).join(",")}${value.length === 0 ? space() : ""}]`;
    if (value instanceof Text)
      return `{${value.members.map(([key, member]) => `${space() + string(key) + space()}:${space()}${any(member)}${space()}`).join(",")}}`;
    return JSON.stringify(value) ?? "null";
  };
  return space() + any(value) + space();
}

function escaped(character: string): string {
  return [...character]
    .flatMap((each) => each.split(""))
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
    .join("");
}

// What a client may see: read by JSON.parse where that is beyond doubt.
function isKept(members: Members): boolean {
  const metas = members.filter(([key]) => key.toLowerCase() === "metadata");
  const meta = metas[0]?.[1];
  if (metas.length !== 1 || metas[0]?.[0] !== "metadata" || !(meta instanceof Text)) return false;
  const seen = { namespace: "", name: "" };
  for (const field of ["namespace", "name"] as const) {
    const found = meta.members.filter(([key]) => key.toLowerCase() === field);
    if (found.length === 0) continue;
    const value = found[0]?.[1];
    if (
      found.length > 1 ||
      found[0]?.[0] !== field ||
      typeof value !== "string" ||
      !value.isWellFormed() ||
      value.includes("\ufffd")
    )
      return false;
    seen[field] = value;
  }
  return keep(seen);
}

const list = fc.record({
  items: fc.array(item, { maxLength: 6 }),
  style,
  metaFirst: fc.boolean(),
  count: fc.boolean(),
  table: fc.boolean(),
  cuts: fc.array(fc.nat(), { maxLength: 12 }),
});

function listText(
  items: readonly unknown[],
  withCount: boolean,
  { style, metaFirst, table }: { style: Style; metaFirst: boolean; table: boolean },
): string {
  const meta: Members = [
    ["continue", "c"],
    ...(withCount ? ([["remainingItemCount", 7]] as const) : []),
    ["resourceVersion", "9"],
  ];
  const head: Members = [["metadata", new Text(meta)]];
  const array: Members = [[table ? "rows" : "items", items]];
  return write(
    new Text([
      ["apiVersion", "v1"],
      ...(metaFirst ? [...head, ...array] : [...array, ...head]),
      ["kind", table ? "Table" : "FooList"],
    ]),
    style,
  );
}

test("the result equals parsing everything and filtering then, at any split", () => {
  fc.assert(
    fc.property(list, ({ items, cuts, count, ...form }) => {
      const wrap = (members: Members) =>
        form.table
          ? new Text([
              ["cells", [1]],
              ["object", new Text(members)],
            ])
          : new Text(members);
      const kept = items.filter(isKept);
      const body = Buffer.from(listText(items.map(wrap), count, form));
      const filter = createListFilter("json", keep);
      const result = runFilter(filter, cutAt(body, cuts));
      expect([filter.counts.kept, filter.counts.dropped]).toEqual([kept.length, items.length - kept.length]);
      const expectCount = count && !form.metaFirst && kept.length === items.length;
      expect(JSON.parse(result.toString())).toEqual(
        JSON.parse(listText(kept.map(wrap), expectCount, { ...form, style: { spaces: [""], escaping: false } })),
      );
      if (kept.length === items.length && (!count || expectCount)) expect(result.equals(body)).toBe(true);
      expect(runFilter(createListFilter("json", keep), [body]).equals(result)).toBe(true);
    }),
    budget(),
  );
});

test("every truncation of a list is an error, and what came before it is no list", () => {
  fc.assert(
    fc.property(list, fc.nat(), ({ items, cuts, count, ...form }, at) => {
      const body = Buffer.from(
        listText(
          items.map((members) => new Text(members)),
          count,
          { ...form, table: false },
        ).trim(),
      );
      const short = body.subarray(0, at % body.length);
      const { emitted, error } = tryFilter(createListFilter("json", keep), cutAt(short, cuts));
      expect(error).toMatchObject({ code: "CODEC_TRUNCATED" });
      expect(() => JSON.parse(emitted.toString())).toThrow(SyntaxError);
    }),
    budget(),
  );
});

const label = fc.tuple(fc.oneof(fc.constantFrom("app", "App", "constructor", 'a"b', "\u00fc"), text), text);
const labelled = fc.record({
  labels: fc.option(fc.array(label, { maxLength: 4 })),
  twice: fc.boolean(),
  others,
  sort: fc.nat(2),
});

test("labels are those that JSON.parse reads, and an object whose labels are there twice is dropped", () => {
  fc.assert(
    fc.property(fc.array(labelled, { maxLength: 4 }), style, fc.array(fc.nat(), { maxLength: 12 }), (objects, style, cuts) => {
      const items = objects.map(({ labels, twice, others, sort }) => {
        const own: Members = labels === null ? [] : [["labels", new Text(labels)]];
        const meta = shuffled([...others, ...own, ["namespace", "own"], ...(twice ? own : [])], sort);
        return new Text([
          ["spec", new Text([["labels", "decoy"]])],
          ["metadata", new Text(meta)],
        ]);
      });
      const seen: unknown[] = [];
      const keepAll = (meta: ItemMeta) => seen.push(new Map(Object.entries(meta.labels ?? {}))) > 0;
      const body = Buffer.from(write(new Text([["items", items]]), style));
      const filter = createListFilter("json", keepAll, { labels: true });
      runFilter(filter, cutAt(body, cuts));
      const readable = objects.filter(
        ({ labels, twice }) =>
          labels === null ||
          (!twice &&
            new Set(labels.map(([key]) => key)).size === labels.length &&
            labels.flat().every((each) => each.isWellFormed() && !each.includes("\ufffd"))),
      );
      expect(seen).toEqual(readable.map(({ labels }) => new Map(labels ?? [])));
      expect(filter.counts.dropped).toBe(objects.length - readable.length);
    }),
    budget(),
  );
});

test("a list with some bytes changed gives an error, or what is left of it shows no foreign object", () => {
  const edit = fc.tuple(fc.nat(), fc.oneof(fc.constantFrom(...Buffer.from('"{}[],:\\ ')), fc.integer({ min: 0, max: 255 })));
  fc.assert(
    fc.property(list, fc.array(edit, { minLength: 1, maxLength: 3 }), ({ items, cuts, count, ...form }, edits) => {
      const body = Buffer.from(
        listText(
          items.map((members) => new Text(members)),
          count,
          { ...form, table: false },
        ),
      );
      for (const [at, byte] of edits) body[at % body.length] = byte;
      const result = attempt(() => runFilter(createListFilter("json", keep), cutAt(body, cuts)));
      // Where it is cut changes nothing: neither what comes out nor whether it does.
      expect(attempt(() => runFilter(createListFilter("json", keep), [body]))).toEqual(result);
      const parsed: unknown = result === undefined ? undefined : attempt(() => JSON.parse(result.toString()));
      for (const each of (parsed as { items?: { metadata?: ItemMeta }[] } | undefined)?.items ?? []) {
        expect(keep(each.metadata ?? { namespace: "", name: "" })).toBe(true);
      }
    }),
    budget(),
  );
});

test("garbage ends with an error and lets nothing out before an array of items", () => {
  const token = fc.constantFrom(
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    '"',
    "\\",
    '"kind"',
    '"items"',
    '"metadata"',
    "1",
    "null",
    " ",
    '"Status"',
  );
  const garbage = fc.oneof(
    fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
    fc.array(token, { maxLength: 60 }).map((tokens) => Buffer.from(tokens.join(""))),
  );
  fc.assert(
    fc.property(garbage, fc.array(fc.nat(), { maxLength: 5 }), (bytes, cuts) => {
      const emitted: Uint8Array[] = [];
      const filter = createListFilter("json", () => false);
      const push = (slice: Uint8Array): void => {
        emitted.push(slice);
      };
      const done = attempt(() => {
        for (const chunk of cutAt(bytes, cuts)) filter.push(chunk, push);
        filter.end(push);
        return true;
      });
      const text = Buffer.concat(emitted).toString();
      if (!text.includes('"items"')) expect(text).toBe(done === true ? bytes.toString() : "");
    }),
    budget(),
  );
});

// The result, or undefined after a refusal; anything else that is thrown is a bug.
function attempt<T>(run: () => T): T | undefined {
  try {
    return run();
  } catch (error) {
    if (error instanceof SyntaxError || (error instanceof MeshError && error.code.startsWith("CODEC_"))) return undefined;
    throw error;
  }
}
