import { describe, expect, it } from "vitest";
import { envelope, type Field, message } from "../../../test/support/kube-protobuf.ts";
import { MeshError } from "../../base/errors.ts";
import { createListFilter, createListJoiner, type Encoding, type ItemMeta, type Keep } from "./codec.ts";

interface Item {
  readonly namespace: string;
  readonly name: string;
}

const everything: Keep = () => true;
const VERSION = 7n;
const a1 = { namespace: "a", name: "1" };
const a2 = { namespace: "a", name: "2" };
const b1 = { namespace: "b", name: "1" };
const c1 = { namespace: "c", name: "1" };

const json = (items: readonly Item[], version = "7") =>
  Buffer.from(
    `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"${version}"},"items":[${items.map((metadata) => JSON.stringify({ metadata })).join(",")}]}\n`,
  );
const custom = (items: readonly Item[], version = "7") =>
  Buffer.from(
    `${JSON.stringify({ apiVersion: "v1", items: items.map((metadata) => ({ metadata })), kind: "PodList", metadata: { continue: "", resourceVersion: version } })}\n`,
  );
const pretty = (items: readonly Item[]) =>
  Buffer.from(
    JSON.stringify(
      { kind: "PodList", metadata: { resourceVersion: "7" }, items: items.map((metadata) => ({ metadata })) },
      null,
      2,
    ),
  );
const table = (items: readonly Item[]) =>
  Buffer.from(
    JSON.stringify({
      kind: "Table",
      metadata: { resourceVersion: "7" },
      columnDefinitions: [{ name: "Name" }],
      rows: items.map((metadata) => ({ cells: [metadata.name], object: { metadata } })),
    }),
  );
const item = ({ namespace, name }: Item): Field => [
  2,
  message([
    [
      1,
      [
        [1, name],
        [3, namespace],
      ],
    ],
  ]),
];
const protobuf = (items: readonly Item[], version = "7") =>
  envelope("v1", "PodList", [
    [
      1,
      [
        [1, ""],
        [2, version],
        [3, ""],
      ],
    ],
    ...items.map(item),
  ]);

interface Written {
  readonly bytes: Buffer;
  readonly dropped: number;
}

function join(
  encoding: Encoding,
  lists: readonly Uint8Array[],
  keep = everything,
  chunkBytes = Number.MAX_SAFE_INTEGER,
): Written {
  const joiner = createListJoiner(encoding, VERSION, 1_000);
  const slices: Uint8Array[] = [];
  const emit = (slice: Uint8Array) => {
    slices.push(Buffer.from(slice));
  };
  let dropped = 0;
  for (const list of lists) {
    const filter = joiner.next(keep);
    for (let at = 0; at < list.length; at += chunkBytes) filter.push(Buffer.from(list.subarray(at, at + chunkBytes)), emit);
    filter.end(emit);
    dropped += filter.counts.dropped;
  }
  joiner.end(emit);
  return { bytes: Buffer.concat(slices), dropped };
}

function code(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    return error instanceof MeshError ? error.code : String(error);
  }
  return "none";
}

const FORMS = [
  ["JSON", "json", json],
  ["JSON with its metadata at the end", "json", custom],
  ["a JSON Table", "json", table],
  ["JSON with white space", "json", pretty],
  ["protobuf", "protobuf", protobuf],
] as const;

describe.each(FORMS)("%s", (_name, encoding, form) => {
  it.each([
    ["lists with items", [[a1, a2], [b1], [c1]]],
    ["an empty list between others", [[a1], [], [c1]]],
    ["an empty list in front", [[], [b1], [c1]]],
    ["an empty list at the end", [[a1, a2], []]],
  ])("is joined to the bytes of the one list: %s", (_case, lists) => {
    const whole = form(lists.flat());
    for (const chunkBytes of [1, 7, 1_000]) {
      const { bytes } = join(
        encoding,
        lists.map((items) => form(items)),
        everything,
        chunkBytes,
      );
      const [joined, expected] =
        form === pretty ? [bytes, whole].map((text) => JSON.stringify(JSON.parse(String(text)))) : [bytes, whole];
      expect(joined).toEqual(expected);
    }
  });

  it("is joined without the items that are not kept", () => {
    const keep = ({ name }: ItemMeta) => name === "1";
    const { bytes, dropped } = join(encoding, [form([a1, a2]), form([a2]), form([c1])], keep);
    const filter = createListFilter(encoding, everything);
    const parts: Uint8Array[] = [];
    filter.push(bytes, (slice) => parts.push(slice));
    filter.end((slice) => parts.push(slice));
    expect([filter.counts.kept, dropped]).toEqual([2, 2]);
    if (form !== pretty) expect(bytes).toEqual(form([a1, c1]));
  });
});

it("an empty list and another one are an empty list", () => {
  expect(join("json", [json([]), json([])]).bytes).toEqual(json([]));
  expect(join("protobuf", [protobuf([]), protobuf([])]).bytes).toEqual(protobuf([]));
});

it("null is an empty list, as the API server writes it for metadata", () => {
  for (const form of [json, custom]) {
    const none = Buffer.from(form([]).toString().replace("[]", "null"));
    for (const chunkBytes of [1, 1_000]) {
      expect(String(join("json", [none, form([a1]), none], everything, chunkBytes).bytes)).toEqual(String(form([a1])));
      expect(String(join("json", [none, none], everything, chunkBytes).bytes)).toEqual(String(form([])));
    }
  }
});

describe("a list that differs in more than its items is refused", () => {
  const status = '{"kind":"Status","apiVersion":"v1","status":"Failure"}';
  it.each([
    ["JSON of another version", "json", json([b1], "8"), "CODEC_MALFORMED"],
    ["JSON with its metadata at the end, of another version", "json", custom([b1], "8"), "CODEC_MALFORMED"],
    ["another kind", "json", Buffer.from(json([b1]).toString().replace("PodList", "PopList")), "CODEC_MALFORMED"],
    ["a page of a list", "json", Buffer.from(json([b1]).toString().replace('"7"', '"7","continue":"x"')), "CODEC_MALFORMED"],
    ["two arrays", "json", Buffer.from('{"kind":"PodList","items":[],"rows":[]}'), "CODEC_MALFORMED"],
    ["no array", "json", Buffer.from(json([]).toString().replace("[]", "{}")), "CODEC_NOT_A_LIST"],
    ["a Status", "json", Buffer.from(status), "CODEC_NOT_A_LIST"],
    ["half a list", "json", json([b1]).subarray(0, -5), "CODEC_TRUNCATED"],
    ["protobuf of another version", "protobuf", protobuf([b1], "8"), "CODEC_MALFORMED"],
    ["protobuf of another kind", "protobuf", envelope("v1", "PopList", [[1, [[2, "7"]]]]), "CODEC_MALFORMED"],
    ["a protobuf Status", "protobuf", envelope("v1", "Status", [[2, "Failure"]]), "CODEC_MALFORMED"],
    ["more protobuf than may be held", "protobuf", protobuf(Array(100).fill(b1)), "CODEC_TOO_LARGE"],
  ] as const)("%s", (_name, encoding, second, expected) => {
    const first = encoding === "json" ? json([a1]) : protobuf([a1]);
    expect(code(() => join(encoding, [first, second]))).toBe(expected);
  });
});

it("JSON leaves as it arrives, before the last list has come", () => {
  const joiner = createListJoiner("json", VERSION, 1_000);
  const slices: string[] = [];
  const emit = (slice: Uint8Array) => {
    slices.push(String(Buffer.from(slice)));
  };
  const filter = joiner.next(everything);
  filter.push(json([a1]), emit);
  filter.end(emit);
  expect(slices.join("")).toContain('"name":"1"');
});
