import { describe, expect, test } from "vitest";
import { cutAt, runFilter } from "../../../test/support/byte-chunks.ts";
import { decodeList, envelope, type Field, message, watchFrame } from "../../../test/support/kube-protobuf.ts";
import { createListFilter, type Encoding, elementStripper, stripFrame, stripObject } from "./codec.ts";

const MANAGED = String.raw`"managedFields": [{"manager":"kube\"ctl","fieldsV1":{"f:a":{".":{}}}}]`;

function stripText(text: string): string {
  return Buffer.from(stripObject("json", Buffer.from(text))).toString();
}

describe("stripping JSON", () => {
  test.each([
    ["first", `{"metadata":{${MANAGED},"name":"a"}}`, '{"metadata":{"name":"a"}}'],
    ["in the middle", `{"metadata":{"name":"a",${MANAGED},"uid":"u"}}`, '{"metadata":{"name":"a","uid":"u"}}'],
    ["last", `{"metadata":{"name":"a",${MANAGED}},"spec":1}`, '{"metadata":{"name":"a"},"spec":1}'],
    ["alone", `{"metadata":{${MANAGED}}}`, '{"metadata":{}}'],
    ["null", '{"metadata":{"managedFields":null,"name":"a"}}', '{"metadata":{"name":"a"}}'],
    ["with its key escaped", String.raw`{"metadata":{"name":"a","manag\u0065dF\u0069elds":[]}}`, '{"metadata":{"name":"a"}}'],
    [
      "under an escaped key",
      String.raw`{"\u006detadata":{"managedFields":[],"name":"a"}}`,
      String.raw`{"\u006detadata":{"name":"a"}}`,
    ],
    ["twice", '{"metadata":{"managedFields":[1],"name":"a","managedFields":[2]}}', '{"metadata":{"name":"a"}}'],
    ["twice at the beginning", '{"metadata":{"managedFields":[1],"managedFields":[2],"name":"a"}}', '{"metadata":{"name":"a"}}'],
    [
      "in metadata that is there twice",
      '{"metadata":{"managedFields":[1]},"metadata":{"managedFields":[2]}}',
      '{"metadata":{},"metadata":{}}',
    ],
    [
      "with metadata behind",
      `{"spec":{"a":"}"},"metadata":{${MANAGED},"name":"a"}}\n`,
      '{"spec":{"a":"}"},"metadata":{"name":"a"}}\n',
    ],
  ])("managedFields %s", (_, before, after) => {
    expect(stripText(before)).toBe(after);
  });

  test("pretty-printed text keeps its lines", () => {
    expect(stripText('{\n  "metadata": {\n    "managedFields": [\n      {}\n    ],\n    "name": "a"\n  }\n}')).toBe(
      '{\n  "metadata": {\n    \n    "name": "a"\n  }\n}',
    );
    expect(stripText('{\n  "metadata": {\n    "name": "a" ,\n    "managedFields": [ ]\n  }\n}')).toBe(
      '{\n  "metadata": {\n    "name": "a"\n  }\n}',
    );
    expect(stripText('{ "metadata": { "managedFields" : [ ] } }')).toBe('{ "metadata": {  } }');
  });

  test.each([
    ["in a pod template", '{"metadata":{"name":"a"},"spec":{"template":{"metadata":{"managedFields":[]}}}}'],
    ["in a nested metadata", '{"metadata":{"name":"a","metadata":{"managedFields":[]}}}'],
    ["in another case", '{"metadata":{"ManagedFields":[]},"Metadata":{"managedFields":[]}}'],
    ["at the top", '{"managedFields":[],"metadata":{"name":"a"}}'],
    ["in the text of an annotation", String.raw`{"metadata":{"annotations":{"last":"{\"managedFields\":[]}"}}}`],
    ["in the items of an object that is not a list", '{"kind":"Foo","items":[{"metadata":{"managedFields":[]}}]}'],
    [
      "in the rows of an object that is not a Table",
      '{"kind":"Table","apiVersion":"x/v1","rows":[{"object":{"metadata":{"managedFields":[]}}}]}',
    ],
    ["nowhere", '{"metadata":"x"}'],
    ["in a list", '[{"metadata":{"managedFields":[]}}]'],
    ["in text that breaks off", '{"metadata":{"managedFields":[],"name":"a"'],
    ["in text that is no JSON", 'metadata: {"managedFields":[]}'],
    ["in a document of no bytes", ""],
  ])("managedFields %s stay, and so does the array", (_, text) => {
    const body = Buffer.from(text);
    expect(stripObject("json", body)).toBe(body);
  });

  test("strips every item of a list, wherever the list has its kind", () => {
    const items = (managed: string) =>
      `"items":[{"metadata":{"name":"a"${managed}}},{"metadata":{}}, {"metadata":{"name":"b"${managed}},"spec":7}]`;
    const list = (managed: string) => [
      `{"kind":"PodList","metadata":{"resourceVersion":"7"},${items(managed)}}`,
      `{"apiVersion":"x/v1",${items(managed)},"kind":"FooList"}`,
    ];
    expect(list(`,${MANAGED}`).map(stripText)).toEqual(list(""));
  });

  test("strips the object of every row of a Table", () => {
    const table = (managed: string) =>
      `{"kind":"Table","apiVersion":"meta.k8s.io/v1","rows":[{"cells":["managedFields"],"object":{"metadata":{"name":"a"${managed}}}},{"cells":[],"object":null}]}`;
    expect(stripText(table(`,${MANAGED}`))).toBe(table(""));
  });

  test.each(["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"])("strips the object of a watch event %s", (type) => {
    const frame = (managed: string) =>
      `{"type":"${type}","metadata":{"managedFields":[]},"object":{"kind":"Pod","metadata":{"name":"a"${managed}}}}\n`;
    expect(Buffer.from(stripFrame("json", Buffer.from(frame(`,${MANAGED}`)))).toString()).toBe(frame(""));
  });

  test("strips the rows of a Table in a watch event", () => {
    const frame = (managed: string) =>
      `{"object":{"rows":[{"object":{"metadata":{${managed}}}}],"kind":"Table","apiVersion":"meta.k8s.io/v1"},"type":"ADDED"}`;
    expect(Buffer.from(stripFrame("json", Buffer.from(frame(MANAGED)))).toString()).toBe(frame(""));
  });
});

const manager = (size: number): Field => [
  17,
  [
    [1, "kubectl"],
    [7, [[1, "f".repeat(size)]]],
  ],
];
const meta = (managed: readonly Field[]): Field => [1, [[1, "a"], ...managed, [3, "mine"], [11, [[1, "app"]]]]];
const pod = (managed: readonly Field[]) => message([[2, [[1, [manager(3)]]]], meta(managed), [3, "status"]]);

describe("stripping protobuf", () => {
  test.each([[[manager(0)]], [[manager(100)]], [[manager(120)]], [[manager(20_000), manager(0)]]])(
    "every field 17 of the metadata, and the lengths around it",
    (managed) => {
      expect(
        Buffer.from(stripObject("protobuf", envelope("v1", "Pod", pod(managed)))).equals(envelope("v1", "Pod", pod([]))),
      ).toBe(true);
      const list = (managed: readonly Field[]) =>
        envelope("v1", "PodList", [
          [1, [[2, "7"]]],
          [2, pod(managed)],
          [2, pod([])],
          [2, pod(managed)],
        ]);
      expect(Buffer.from(stripObject("protobuf", list(managed))).equals(list([]))).toBe(true);
      const frame = (managed: readonly Field[]) => watchFrame("ADDED", envelope("v1", "Pod", pod(managed)));
      expect(Buffer.from(stripFrame("protobuf", frame(managed))).equals(frame([]))).toBe(true);
    },
  );

  test("strips metadata that occurs twice", () => {
    const twice = (managed: readonly Field[]) => envelope("v1", "Pod", [meta(managed), meta(managed)]);
    expect(Buffer.from(stripObject("protobuf", twice([manager(5)]))).equals(twice([]))).toBe(true);
  });

  test.each([
    ["a Status", envelope("v1", "Status", [[1, [manager(1)]]])],
    ["a generic List", envelope("v1", "List", [[2, pod([manager(1)])]])],
    ["an object without managedFields", envelope("v1", "Pod", pod([]))],
    ["an object that breaks off", envelope("v1", "Pod", pod([manager(1)])).subarray(0, 60)],
    ["metadata that breaks off", envelope("v1", "Pod", [[1, Buffer.concat([message([manager(1)]), Buffer.from([0x0a, 9])])]])],
    ["what has no envelope", pod([manager(1)])],
    ["no bytes", Buffer.alloc(0)],
  ])("%s comes back as the same array", (_, body) => {
    expect(stripObject("protobuf", body)).toBe(body);
  });

  test("a frame whose length is wrong comes back as the same array", () => {
    const frame = Buffer.concat([watchFrame("ADDED", envelope("v1", "Pod", pod([manager(1)]))), Buffer.alloc(1)]);
    expect(stripFrame("protobuf", frame)).toBe(frame);
  });
});

describe("stripping the elements of a filtered list", () => {
  const items = (managed: boolean) =>
    ["mine", "foreign", "mine"].map((namespace) => ({
      metadata: { namespace, ...(managed ? { managedFields: [{ a: 1 }] } : {}), name: "a" },
    }));
  const run = (encoding: Encoding, body: Buffer, maxHeldBytes = 1_000_000) =>
    runFilter(
      createListFilter(encoding, ({ namespace }) => namespace === "mine", { rewrite: elementStripper(encoding), maxHeldBytes }),
      cutAt(body, [7, 40, 90]),
    );

  test("strips JSON items and rows", () => {
    const mine = items(false).filter(({ metadata }) => metadata.namespace === "mine");
    expect(run("json", Buffer.from(JSON.stringify({ items: items(true) }))).toString()).toBe(JSON.stringify({ items: mine }));
    const rows = (objects: object[]) => JSON.stringify({ rows: objects.map((object) => ({ cells: [], object })) });
    expect(run("json", Buffer.from(rows(items(true)))).toString()).toBe(rows(mine));
  });

  test("strips protobuf items, with an exact length and with filler", () => {
    const list = envelope("v1", "PodList", [
      [2, pod([manager(1)])],
      [2, message([[1, [[3, "foreign"]]]])],
      [2, pod([manager(300)])],
    ]);
    const wanted = envelope("v1", "PodList", [
      [2, pod([])],
      [2, pod([])],
    ]);
    expect(run("protobuf", list).equals(wanted)).toBe(true);
    expect(decodeList(run("protobuf", list, 0))).toEqual(decodeList(wanted));
  });
});
