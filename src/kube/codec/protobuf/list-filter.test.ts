import { describe, expect, test } from "vitest";
import { runFilter, tryFilter } from "../../../../test/support/byte-chunks.ts";
import { bytesOf, decodeList, envelope, type Field, message } from "../../../../test/support/kube-protobuf.ts";
import { MeshError } from "../../../base/errors.ts";
import { createListFilter, type ItemMeta, type ListFilterOptions } from "../codec.ts";

const mine = ({ namespace }: ItemMeta) => namespace === "mine";
const listMeta: Field = [
  1,
  [
    [1, ""],
    [2, "7"],
    [3, "token"],
  ],
];

function item(namespace: string, name: string, ...rest: Field[]): Buffer {
  return message([
    [
      1,
      [
        [1, name],
        [2, ""],
        [3, namespace],
        [11, "labels"],
      ],
    ],
    ...rest,
  ]);
}

function list(...items: Uint8Array[]): Buffer {
  return envelope("v1", "PodList", [listMeta, ...items.map((each): Field => [2, each])]);
}

function filter(body: Buffer, options: ListFilterOptions = {}): { bytes: Buffer; kept: number; dropped: number } {
  const one = createListFilter("protobuf", mine, options);
  const bytes = runFilter(one, [body]);
  const bytewise = createListFilter("protobuf", mine, options);
  expect(
    runFilter(
      bytewise,
      [...body].map((byte) => Uint8Array.of(byte)),
    ).equals(bytes),
  ).toBe(true);
  return { bytes, kept: one.counts.kept, dropped: one.counts.dropped };
}

function code(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    return error instanceof MeshError ? error.code : String(error);
  }
  return "none";
}

test("a list of two items as Go writes it, without the foreign item, is the list of one item as Go writes it", () => {
  const before = Buffer.from(
    "6b387300" + // k8s\0
      "0a0d" +
      "0a027631" +
      "1207506f644c697374" + // TypeMeta v1 PodList
      "1224" + // raw, 36 bytes
      "0a08" +
      "0a00" +
      "12023131" +
      "1a00" + // ListMeta, resourceVersion 11
      "120b" +
      "0a09" +
      "0a0161" +
      "1a046d696e65" + // item a of mine
      "120b" +
      "0a09" +
      "0a0178" +
      "1a046f746872" + // item x of othr
      "1a00" +
      "2200",
    "hex",
  );
  const after =
    "6b387300" + "0a0d0a0276311207506f644c697374" + "1217" + "0a080a00120231311a00" + "120b0a090a01611a046d696e65" + "1a002200";
  expect(filter(before).bytes.toString("hex")).toBe(after);
});

describe("within the bound of held bytes", () => {
  const [a, b, x] = [item("mine", "a", [2, "spec"]), item("mine", "b"), item("foreign", "x", [2, "spec"])];
  test.each([
    ["first", [x, a, b], [a, b]],
    ["in the middle", [a, x, b], [a, b]],
    ["last", [a, x], [a]],
    ["all", [x, x], []],
    ["none", [a, b], [a, b]],
    ["of an empty list", [], []],
  ])("items dropped %s: the body is the same as that of a list of only the kept items", (_, before, after) => {
    const { bytes, kept, dropped } = filter(list(...before));
    expect(bytes.equals(list(...after))).toBe(true);
    expect([kept, dropped]).toEqual([after.length, before.length - after.length]);
  });

  test("remainingItemCount is left out; continue, resourceVersion and shardInfo stay", () => {
    const meta = (...count: Field[]): Field => [1, [[2, "7"], [3, "token"], ...count, [5, [[1, "shard"]]]]];
    const body = (...count: Field[]) => envelope("v1", "PodList", [meta(...count), [2, a]]);
    expect(filter(body([4, 300])).bytes.equals(body())).toBe(true);
  });

  test("unknown fields of the list are left out, as their content is unknown", () => {
    expect(filter(envelope("v1", "PodList", [[7, "secret"], [8, 5], listMeta, [2, a]])).bytes.equals(list(a))).toBe(true);
  });
});

describe("beyond the bound of held bytes", () => {
  const foreign = (size: number) => item("foreign", "secret", [2, "secret".repeat(Math.ceil(size / 6)).slice(0, size)]);

  test("dropped items become filler of the same size and none of their bytes passes", () => {
    for (const size of [
      0, 80, 90, 91, 92, 93, 94, 95, 96, 97, 98, 99, 100, 16_340, 16_341, 16_342, 16_343, 16_344, 16_345, 16_346, 16_347, 200_000,
    ]) {
      const body = list(item("mine", "a"), foreign(size), item("mine", "b"), foreign(size));
      const { bytes, dropped } = filterOnce(body, { maxHeldBytes: 0 });
      expect(bytes.length).toBe(body.length);
      expect(bytes.includes("secret")).toBe(false);
      expect(decodeList(bytes)).toEqual(decodeList(list(item("mine", "a"), item("mine", "b"))));
      expect(dropped).toBe(2);
    }
  });

  test("an item that was dropped before the bound needs no filler", () => {
    const body = list(foreign(5000), item("mine", "a"), foreign(10), item("mine", "b"));
    const { bytes } = filter(body, { maxHeldBytes: 40 });
    expect(body.length - bytes.length).toBeGreaterThan(5000);
    expect(decodeList(bytes).items).toHaveLength(2);
  });

  test("remainingItemCount and unknown fields are left out too", () => {
    const body = envelope("v1", "PodList", [
      [2, item("mine", "a")],
      [9, 1],
      [9, "secret"],
      [
        1,
        [
          [2, "7"],
          [4, 9],
        ],
      ],
    ]);
    const { bytes } = filter(body, { maxHeldBytes: 0 });
    expect(bytes.length).toBe(body.length);
    expect(bytesOf(decodeList(bytes).meta, 2)?.toString()).toBe("7");
    expect(decodeList(bytes).meta).toHaveLength(1);
    expect(bytes.includes("secret")).toBe(false);
  });
});

function filterOnce(body: Buffer, options: ListFilterOptions): { bytes: Buffer; dropped: number } {
  const one = createListFilter("protobuf", mine, options);
  return { bytes: runFilter(one, [body]), dropped: one.counts.dropped };
}

test("memory stays flat over a large list: kept bytes leave once the bound is reached", () => {
  const one = createListFilter("protobuf", mine, { maxHeldBytes: 10_000 });
  const items = Array.from(
    { length: 1000 },
    (_, index): Field => [2, item(index % 2 === 0 ? "mine" : "foreign", `p${index}`, [2, "x".repeat(100)])],
  );
  const body = envelope("v1", "PodList", items);
  let emitted = 0;
  let given = 0;
  let mostHeld = 0;
  for (let at = 0; at < body.length; at += 1000) {
    const chunk = body.subarray(at, at + 1000);
    given += chunk.length;
    one.push(chunk, (slice) => {
      emitted += slice.length;
    });
    if (emitted > 0) mostHeld = Math.max(mostHeld, given - emitted);
  }
  expect(one.counts.kept).toBe(500);
  expect(mostHeld).toBeLessThan(12_000);
});

describe("an item is dropped and counted", () => {
  const good = item("mine", "a");
  test.each<[string, Uint8Array]>([
    ["without metadata", message([[2, "spec"]])],
    ["with nothing", Buffer.alloc(0)],
    ["with metadata twice", Buffer.concat([good, good])],
    [
      "with the namespace twice",
      message([
        [
          1,
          [
            [3, "foreign"],
            [3, "mine"],
          ],
        ],
      ]),
    ],
    [
      "with the name twice",
      message([
        [
          1,
          [
            [1, "a"],
            [1, "b"],
            [3, "mine"],
          ],
        ],
      ]),
    ],
    ["with metadata that is a number", message([[1, 5]])],
    ["with a namespace that is a number", message([[1, [[3, 5]]]])],
    ["with a namespace that is no UTF-8", message([[1, [[3, Buffer.from([0xff])]]]])],
    ["with metadata that is cut off", message([[1, Buffer.from([0x1a, 0x09, 0x6d])]])],
    ["with a group in it", Buffer.concat([good, Buffer.from([0x13, 0x14])])],
    ["with a field behind its end", Buffer.concat([good, Buffer.from([0x12, 0x7f])])],
  ])("%s", (_, bad) => {
    const one = createListFilter("protobuf", ({ namespace }) => namespace !== "foreign");
    expect(runFilter(one, [list(bad, good)]).equals(list(good))).toBe(true);
    expect(one.counts.dropped).toBe(1);
  });
});

describe("a message that is not a list", () => {
  test("passes unchanged if it is a Status, in any chunks", () => {
    const status = envelope("v1", "Status", [
      [1, []],
      [2, "Failure"],
      [3, "no"],
      [6, 403],
    ]);
    expect(filter(status).bytes.equals(status)).toBe(true);
    expect(filter(status, { maxHeldBytes: 0 }).bytes.equals(status)).toBe(true);
  });

  test.each(["Pod", "Table", "List", "MetricValueList", "ExternalMetricValueList", ""])(
    "of kind %j is refused before a byte has passed",
    (kind) => {
      const emitted: Uint8Array[] = [];
      const one = createListFilter("protobuf", () => true);
      expect(code(() => one.push(envelope("v1", kind, [[1, []]]), (slice) => emitted.push(slice)))).toBe("CODEC_NOT_A_LIST");
      expect(emitted).toEqual([]);
    },
  );
});

describe("a namespace is compared with the previous one", () => {
  const both = (first: string, second: string | Buffer) => {
    const [a, b] = [first, second].map((namespace) => message([[1, [[3, namespace]]]]));
    const one = createListFilter("protobuf", ({ namespace }) => namespace === first);
    runFilter(one, [list(a as Buffer, b as Buffer)]);
    return [one.counts.kept, one.counts.dropped];
  };

  test("and is the same only if its bytes are the same", () => {
    expect(both("mine", "mine")).toEqual([2, 0]);
    expect(both("m\u00fc", "m\u00fc")).toEqual([2, 0]);
    expect(both("mine", "minE")).toEqual([1, 1]);
    expect(both("m\u00fc", Buffer.from("m\u00fc", "latin1"))).toEqual([1, 1]);
  });
});

describe("errors", () => {
  const emptyType: Field = [
    1,
    [
      [1, "v1"],
      [2, "PodList"],
    ],
  ];
  const bare = (fields: Field[]) => Buffer.concat([Buffer.from("k8s\0"), message(fields)]);
  test.each<[string, Buffer]>([
    ["no prefix", Buffer.from('{"items":[]}')],
    ["the list before its type", bare([[2, [[1, []]]], emptyType])],
    ["two types", bare([emptyType, emptyType, [2, []]])],
    ["two lists", bare([emptyType, [2, []], [2, []]])],
    ["an encoded list", bare([emptyType, [3, "gzip"], [2, []]])],
    ["an item that leaves the list", bare([emptyType, [2, Buffer.from([0x12, 0x10, 0x0a])], [4, "0123456789abcdef"]])],
    ["an item that is a number", bare([emptyType, [2, [[2, 5]]]])],
    ["a group", bare([emptyType, [2, Buffer.from([0x13, 0x14])]])],
    ["field number 0", bare([emptyType, [2, Buffer.from([0x02, 0x00])]])],
    ["a field number that Go would fold into 2", bare([emptyType, [2, Buffer.from([0x92, 0x80, 0x80, 0x80, 0x80, 0x01, 0x00])]])],
    ["a varint without end", bare([emptyType, [2, Buffer.alloc(30, 0xff)]])],
  ])("%s is malformed", (_, body) => {
    expect(code(() => runFilter(createListFilter("protobuf", mine), [body]))).toBe("CODEC_MALFORMED");
  });

  test("a body that ends inside the list or before it is truncated", () => {
    const body = list(item("mine", "a"), item("foreign", "x"));
    for (let length = 0; length < body.length - 4; length++) {
      expect(code(() => runFilter(createListFilter("protobuf", mine), [body.subarray(0, length)]))).toBe("CODEC_TRUNCATED");
    }
  });

  test("a body that ends inside a dropped field is truncated and nothing has passed", () => {
    const body = envelope("v1", "PodList", [
      [2, item("mine", "a")],
      [9, "x".repeat(100)],
    ]);
    for (let cut = 0; cut < body.length - 4; cut++) {
      const { emitted, error } = tryFilter(createListFilter("protobuf", mine), [body.subarray(0, cut)]);
      expect(error).toMatchObject({ code: "CODEC_TRUNCATED" });
      expect(emitted.length).toBe(0);
    }
  });

  test("an item over the bound is too large before all of it has arrived", () => {
    const body = list(item("mine", "a", [2, "x".repeat(5000)]));
    expect(code(() => createListFilter("protobuf", mine, { maxItemBytes: 1000 }).push(body.subarray(0, 80), () => {}))).toBe(
      "CODEC_TOO_LARGE",
    );
  });
});
