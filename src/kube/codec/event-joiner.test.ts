import { describe, expect, it } from "vitest";
import { envelope, type Field, watchFrame } from "../../../test/support/kube-protobuf.ts";
import type { Encoding, Keep } from "./codec.ts";
import { createEventJoiner } from "./list-events.ts";

const VERSION = 1_000n;
const END = { annotations: { "k8s.io/initial-events-end": "true" } };

/** What comes out of the lists, each cut into pieces of so many bytes. */
function join(
  encoding: Encoding,
  lists: readonly Uint8Array[],
  { pieceBytes = 1 << 20, hasBookmark = true, keep = () => true }: Partial<JoinOptions> = {},
): Buffer {
  const out: Uint8Array[] = [];
  const emit = (slice: Uint8Array) => void out.push(slice);
  const joiner = createEventJoiner(encoding, VERSION, { hasBookmark });
  for (const list of lists) {
    const filter = joiner.next(keep);
    for (let at = 0; at < list.length; at += pieceBytes) filter.push(list.subarray(at, at + pieceBytes), emit);
    filter.end(emit);
  }
  joiner.end(emit);
  return Buffer.concat(out);
}

interface JoinOptions {
  readonly pieceBytes: number;
  readonly hasBookmark: boolean;
  readonly keep: Keep;
}

const json = (value: unknown) => Buffer.from(`${JSON.stringify(value)}\n`);
const linesOf = (bytes: Buffer) =>
  bytes
    .toString()
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line) as unknown);
const pod = (namespace: string, name: string) => ({ metadata: { name, namespace, resourceVersion: "7" } });
const foo = (namespace: string, name: string) => ({ apiVersion: "test/v1", kind: "Foo", ...pod(namespace, name) });
const pods = (...items: unknown[]) => json({ kind: "PodList", apiVersion: "v1", metadata: { resourceVersion: "1000" }, items });
/** As kube-apiserver writes lists of custom resources: the keys in alphabetical order. */
const foos = (...items: unknown[]) =>
  json({ apiVersion: "test/v1", items, kind: "FooList", metadata: { continue: "", resourceVersion: "1000" } });

describe("JSON lists as the beginning of a watch", () => {
  it("are an event for each object, and the bookmark that ends them", () => {
    const type = { kind: "Pod", apiVersion: "v1" };
    expect(linesOf(join("json", [pods(pod("a", "x"), pod("a", "y")), pods(), pods(pod("b", "x"))]))).toEqual([
      { type: "ADDED", object: { ...type, ...pod("a", "x") } },
      { type: "ADDED", object: { ...type, ...pod("a", "y") } },
      { type: "ADDED", object: { ...type, ...pod("b", "x") } },
      { type: "BOOKMARK", object: { ...type, metadata: { resourceVersion: "1000", ...END } } },
    ]);
  });

  it("of custom resources, whose type comes behind the items, have it in the bookmark", () => {
    const events = linesOf(join("json", [foos(foo("a", "x")), foos()]));
    expect(events).toEqual([
      { type: "ADDED", object: foo("a", "x") },
      { type: "BOOKMARK", object: { kind: "Foo", apiVersion: "test/v1", metadata: { resourceVersion: "1000", ...END } } },
    ]);
  });

  it("leave out objects that are not kept, and the bookmark for a client that takes none", () => {
    const keep: Keep = ({ name }) => name === "y";
    const events = linesOf(join("json", [pods(pod("a", "x"), pod("a", "y"))], { keep, hasBookmark: false }));
    expect(events).toEqual([{ type: "ADDED", object: { kind: "Pod", apiVersion: "v1", ...pod("a", "y") } }]);
  });

  it.each([
    ["a list of another version", json({ kind: "PodList", apiVersion: "v1", metadata: { resourceVersion: "999" }, items: [] })],
    ["an object without a type, if that of the list is not known yet", foos(pod("a", "x"))],
    [
      "a Table",
      json({
        kind: "Table",
        apiVersion: "meta.k8s.io/v1",
        metadata: { resourceVersion: "1000" },
        rows: [{ object: foo("a", "x") }],
      }),
    ],
    ["a Status", json({ kind: "Status", apiVersion: "v1", metadata: {} })],
    ["a list that ends early", pods(pod("a", "x")).subarray(0, -5)],
    [
      "a second kind",
      Buffer.from('{"kind":"PodList","kind":"FooList","apiVersion":"v1","metadata":{"resourceVersion":"1000"},"items":[]}'),
    ],
  ])("are refused with %s", (_, list) => {
    expect(() => join("json", [pods(), list])).toThrow(expect.objectContaining({ code: expect.stringMatching(/^CODEC_/) }));
  });

  it("are refused if there is none", () => {
    expect(() => join("json", [])).toThrow(expect.objectContaining({ code: "CODEC_TRUNCATED" }));
  });
});

describe("protobuf lists as the beginning of a watch", () => {
  const item = (name: string): Field[] => [
    [
      1,
      [
        [1, name],
        [3, "a"],
        [6, "7"],
      ],
    ],
  ];
  const list = (...names: string[]) =>
    envelope("v1", "PodList", [[1, [[2, "1000"]]], ...names.map((name): Field => [2, item(name)])]);

  it("are framed events, without a bound of their sum", () => {
    const long = "n".repeat(3 << 20);
    const bookmark: Field[] = [
      [6, "1000"],
      [
        12,
        [
          [1, "k8s.io/initial-events-end"],
          [2, "true"],
        ],
      ],
    ];
    const expected = [
      ...["x", long, long].map((name) => watchFrame("ADDED", envelope("v1", "Pod", item(name)))),
      watchFrame("BOOKMARK", envelope("v1", "Pod", [[1, bookmark]])),
    ];
    expect(join("protobuf", [list("x", long), list(), list(long)]).equals(Buffer.concat(expected))).toBe(true);
  });
});

it("are the same at any split", () => {
  const lists: [Encoding, Uint8Array][] = [
    ["json", pods(pod("a", "x"), pod("a", "y"))],
    ["json", foos(foo("a", "x"), foo("a", "y"))],
    [
      "protobuf",
      envelope("v1", "PodList", [
        [1, [[2, "1000"]]],
        [
          2,
          [
            [
              1,
              [
                [1, "x"],
                [6, "7"],
              ],
            ],
          ],
        ],
        [
          2,
          [
            [
              1,
              [
                [1, "y"],
                [6, "8"],
              ],
            ],
          ],
        ],
      ]),
    ],
  ];
  for (const [encoding, list] of lists)
    for (const pieceBytes of [1, 7, 64])
      expect(join(encoding, [list, list], { pieceBytes }).equals(join(encoding, [list, list]))).toBe(true);
});

it("give an object out with its last byte", () => {
  const out: Uint8Array[] = [];
  const filter = createEventJoiner("json", VERSION, { hasBookmark: true }).next(() => true);
  const whole = pods(pod("a", "x"), pod("a", "y"));
  const end = whole.indexOf(',{"metadata"');
  filter.push(whole.subarray(0, end), (slice) => out.push(slice));
  expect(linesOf(Buffer.concat(out))).toHaveLength(1);
});
