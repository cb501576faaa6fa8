import { describe, expect, test } from "vitest";
import { runFilter } from "../../../test/support/byte-chunks.ts";
import { decodeList, envelope, type Field, message, watchFrame } from "../../../test/support/kube-protobuf.ts";
import { MeshError } from "../../base/errors.ts";
import { createListFilter, type Encoding, elementRenamer, type Keep, renameFrame, renameObject } from "./codec.ts";

const rename = { from: "lock", to: "lock---canary" };

function json(text: string, change = rename): string {
  return Buffer.from(renameObject("json", Buffer.from(text), change)).toString();
}

// A list through the filter, whole and byte by byte.
function renamedList(encoding: Encoding, body: Buffer, keep: Keep, maxHeldBytes = 1_000_000): Buffer {
  const rewrite = elementRenamer(encoding, { from: "lock---canary", to: "lock" });
  const run = (chunks: Uint8Array[]) => runFilter(createListFilter(encoding, keep, { rewrite, maxHeldBytes }), chunks);
  const whole = run([body]);
  expect(run([...body].map((byte) => Uint8Array.of(byte))).equals(whole)).toBe(true);
  return whole;
}

function leaseMessage(name: string, namespace = "system"): Field[] {
  return [
    [
      1,
      [
        [1, name],
        [2, ""],
        [3, namespace],
        [6, "7"],
        [
          11,
          [
            [1, "k"],
            [2, name],
          ],
        ],
      ],
    ],
    [2, [[1, name]]],
  ];
}

function code(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    return error instanceof MeshError ? error.code : String(error);
  }
  return "none";
}

describe("in JSON", () => {
  test("only metadata.name changes, and every other byte stays", () => {
    const body = (name: string) =>
      `{ "kind":"Lease", "spec":{"holderIdentity":"lock","metadata":{"name":"lock"}},\n "metadata" : {"labels":{"name":"lock"},"name" : ${name},"uid":"lock"} }\n`;
    expect(json(body('"lock"'))).toBe(body('"lock---canary"'));
    expect(json(body('"l\\u006fck"'))).toBe(body('"lock---canary"'));
  });

  test("a lock with the name of its namespace keeps its namespace", () => {
    expect(json('{"metadata":{"name":"lock","namespace":"lock"}}')).toBe(
      '{"metadata":{"name":"lock---canary","namespace":"lock"}}',
    );
  });

  test.each([
    ["another name", '{"metadata":{"name":"lock2"}}'],
    ["no name", '{"metadata":{"generateName":"lock"}}'],
    ["no metadata", '{"kind":"DeleteOptions","preconditions":{"name":"lock"}}'],
    ["a name that is no string", '{"metadata":{"name":["lock"]}}'],
  ])("a body with %s comes back as the same array", (_, text) => {
    const body = Buffer.from(text);
    expect(renameObject("json", body, rename)).toBe(body);
  });

  test.each([
    '{"metadata":{"name":"lock","name":"other"}}',
    '{"metadata":{"name":"lock"},"Metadata":{}}',
    '{"kind":"Lease","kind":"Status","metadata":{}}',
  ])("%s is ambiguous", (text) => {
    expect(code(() => json(text))).toBe("CODEC_AMBIGUOUS");
  });

  test("a body that is cut off is malformed", () => {
    expect(code(() => json('{"metadata":{"name":"lock"'))).toBe("CODEC_MALFORMED");
  });

  test("a Status has the lock's name as the operator knows it", () => {
    const status = (name: string) =>
      `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"leases.coordination.k8s.io \\"${name}\\" not found","reason":"NotFound","details":{"name":"${name}","group":"coordination.k8s.io","kind":"leases"},"code":404}\n`;
    expect(json(status("lock---canary"), { from: "lock---canary", to: "lock" })).toBe(status("lock"));
  });

  test("a Table's rows are renamed with the cells that show the name", () => {
    const table = (name: string) =>
      `{"kind":"Table","apiVersion":"meta.k8s.io/v1","rows":[{"cells":["${name}","lock",5],"object":{"metadata":{"name":"${name}"}}},{"cells":["other"],"object":{"metadata":{"name":"other"}}}]}`;
    expect(json(table("lock---canary"), { from: "lock---canary", to: "mine" })).toBe(table("mine"));
  });

  test("a watch event's object is renamed, a Status in an ERROR too", () => {
    const frame = (type: string, object: string) => Buffer.from(`{"type":"${type}","object":${object}}\n`);
    const renamed = renameFrame("json", frame("ADDED", '{"metadata":{"name":"lock"}}'), rename);
    expect(renamed).toEqual(frame("ADDED", '{"metadata":{"name":"lock---canary"}}'));
    const error = (name: string) => `{"kind":"Status","apiVersion":"v1","details":{"name":"${name}"}}`;
    expect(renameFrame("json", frame("ERROR", error("lock")), rename)).toEqual(frame("ERROR", error("lock---canary")));
  });

  test("a list is filtered by its names before the rename", () => {
    const list = (...names: string[]) =>
      JSON.stringify({
        kind: "LeaseList",
        apiVersion: "coordination.k8s.io/v1",
        metadata: {},
        items: names.map((name) => ({ metadata: { name } })),
      });
    const body = Buffer.from(list("lock", "lock---blue", "other", "lock---canary"));
    expect(renamedList("json", body, ({ name }) => name === "other" || name === "lock---canary").toString()).toBe(
      list("other", "lock"),
    );
  });

  test("in a list white space and other elements stay, whichever elements are kept", () => {
    const body = (own: string) => `{"kind":"LeaseList", "items":[ {"metadata":{"name":"a"}} , {"metadata":{"name":"${own}"}} ] }`;
    expect(renamedList("json", Buffer.from(body("lock---canary")), () => true).toString()).toBe(body("lock"));
    expect(renamedList("json", Buffer.from(body("lock---canary")), ({ name }) => name !== "a").toString()).toBe(
      '{"kind":"LeaseList", "items":[ {"metadata":{"name":"lock"}} ] }',
    );
  });

  test("the rows of a Table are renamed with their cells", () => {
    const table = (name: string) =>
      `{"kind":"Table","apiVersion":"meta.k8s.io/v1","rows":[{"cells":["${name}",1],"object":{"metadata":{"name":"${name}"}}}]}`;
    expect(renamedList("json", Buffer.from(table("lock---canary")), () => true).toString()).toBe(table("lock"));
  });
});

describe("in protobuf", () => {
  const lease = (name: string, namespace?: string) => {
    const [meta, spec] = leaseMessage(name, namespace);
    return envelope("coordination.k8s.io/v1", "Lease", [meta as Field, spec as Field]);
  };
  const renamed = (fields: Field[], name: string): Field[] => [
    [1, [[1, name], ...((fields[0]?.[1] as Field[]) ?? []).slice(1)]],
    ...fields.slice(1),
  ];

  test("only metadata.name and the lengths around it change", () => {
    const after = envelope("coordination.k8s.io/v1", "Lease", renamed(leaseMessage("lock"), "lock---canary"));
    expect(Buffer.from(renameObject("protobuf", lease("lock"), rename)).equals(after)).toBe(true);
  });

  test("lengths that need a longer varint are right", () => {
    const long = "x".repeat(120);
    const body = (name: string) =>
      envelope("v1", "ConfigMap", [
        [
          1,
          [
            [1, name],
            [3, long],
          ],
        ],
        [2, "y".repeat(16_250)],
      ]);
    expect(Buffer.from(renameObject("protobuf", body("lock"), rename)).equals(body("lock---canary"))).toBe(true);
  });

  test("a lock with the name of its namespace keeps its namespace", () => {
    const body = (name: string) =>
      envelope("v1", "ConfigMap", [
        [
          1,
          [
            [1, name],
            [3, "lock"],
          ],
        ],
      ]);
    expect(Buffer.from(renameObject("protobuf", body("lock"), rename)).equals(body("lock---canary"))).toBe(true);
  });

  test("a body with another name comes back as the same array", () => {
    const body = lease("other");
    expect(renameObject("protobuf", body, rename)).toBe(body);
    const frame = watchFrame("ADDED", body);
    expect(renameFrame("protobuf", frame, rename)).toBe(frame);
  });

  test("a Status has the lock's name as the operator knows it", () => {
    const status = (name: string) =>
      envelope("v1", "Status", [
        [1, []],
        [2, "Failure"],
        [3, `leases "${name}" not found`],
        [
          5,
          [
            [1, name],
            [3, "leases"],
          ],
        ],
        [6, 404],
      ]);
    const result = renameObject("protobuf", status("lock---canary"), { from: "lock---canary", to: "lock" });
    expect(Buffer.from(result).equals(status("lock"))).toBe(true);
  });

  test("a watch event gets a new length", () => {
    const body = (name: string) => envelope("v1", "ConfigMap", [[1, [[1, name]]]]);
    expect(
      Buffer.from(renameFrame("protobuf", watchFrame("ADDED", body("lock")), rename)).equals(
        watchFrame("ADDED", body("lock---canary")),
      ),
    ).toBe(true);
  });

  test("a list is filtered by its names before the rename", () => {
    const list = (...names: string[]) =>
      envelope("v1", "ConfigMapList", [[1, [[2, "7"]]], ...names.map((name): Field => [2, [[1, [[1, name]]]]])]);
    const result = renamedList("protobuf", list("lock", "other", "lock---canary", "last"), ({ name }) => name !== "lock");
    expect(result.equals(list("other", "lock", "last"))).toBe(true);
  });

  test("in a list beyond the bound of held bytes, filler replaces the bytes that a renamed item saves", () => {
    const list = (...names: string[]) =>
      envelope(
        "v1",
        "ConfigMapList",
        names.map((name): Field => [2, [[1, [[1, name]]]]]),
      );
    for (const maxHeldBytes of [0, 5, 12, 20]) {
      const body = list("other", "lock---canary", "foreign", "lock---canary");
      const result = renamedList("protobuf", body, ({ name }) => name !== "foreign", maxHeldBytes);
      expect(decodeList(result)).toEqual(decodeList(list("other", "lock", "lock")));
    }
  });

  test("an item that would become longer breaks the list, since the list's length may be promised", () => {
    const body = envelope("v1", "ConfigMapList", [[2, [[1, [[1, "lock"]]]]]]);
    const filter = createListFilter("protobuf", () => true, { rewrite: elementRenamer("protobuf", rename) });
    expect(code(() => runFilter(filter, [body]))).toBe("CODEC_TOO_LARGE");
  });

  test.each([
    [
      "two names",
      message([
        [
          1,
          [
            [1, "lock"],
            [1, "lock"],
          ],
        ],
      ]),
    ],
    [
      "two metadata",
      message([
        [1, [[1, "lock"]]],
        [1, [[1, "lock"]]],
      ]),
    ],
  ])("an object with %s is ambiguous", (_, raw) => {
    expect(code(() => renameObject("protobuf", envelope("v1", "ConfigMap", raw), rename))).toBe("CODEC_AMBIGUOUS");
  });
});
