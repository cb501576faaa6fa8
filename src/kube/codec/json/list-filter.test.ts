import { describe, expect, test } from "vitest";
import { runFilter } from "../../../../test/support/byte-chunks.ts";
import { MeshError } from "../../../base/errors.ts";
import { createListFilter, type ItemMeta } from "../codec.ts";

const mine = ({ namespace }: ItemMeta) => namespace === "mine";

function item(namespace: string, name: string, rest: object = {}): object {
  return { metadata: { name, namespace }, ...rest };
}

function filter(body: string, keep = mine): { text: string; kept: number; dropped: number } {
  const one = createListFilter("json", keep);
  const text = runFilter(one, [Buffer.from(body)]).toString();
  const bytewise = createListFilter("json", keep);
  expect(
    runFilter(
      bytewise,
      [...Buffer.from(body)].map((byte) => Uint8Array.of(byte)),
    ).toString(),
  ).toBe(text);
  return { text, kept: one.counts.kept, dropped: one.counts.dropped };
}

function code(body: string | string[], options: { maxItemBytes?: number } = {}): string {
  const emitted: Uint8Array[] = [];
  const one = createListFilter("json", mine, options);
  try {
    for (const part of [body].flat()) one.push(Buffer.from(part), (slice) => emitted.push(slice));
    one.end((slice) => emitted.push(slice));
  } catch (error) {
    expect(() => one.push(Buffer.from(" "), () => {})).toThrow(error as Error);
    return error instanceof MeshError ? error.code : String(error);
  }
  return "none";
}

function list(...items: (object | string)[]): string {
  const texts = items.map((each) => (typeof each === "string" ? each : JSON.stringify(each)));
  return `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[${texts.join(",")}]}\n`;
}

describe("the commas of a filtered list are right", () => {
  const [a, b, x] = [item("mine", "a"), item("mine", "b"), item("foreign", "x")];
  test.each([
    ["the first item is dropped", [x, a, b], [a, b]],
    ["one in the middle is dropped", [a, x, b], [a, b]],
    ["the last item is dropped", [a, b, x], [a, b]],
    ["all are dropped", [x, x, x], []],
    ["only the middle one is kept", [x, a, x], [a]],
    ["nothing is dropped", [a, b], [a, b]],
    ["there is nothing", [], []],
  ])("when %s", (_, before, after) => {
    expect(filter(list(...before))).toEqual({ text: list(...after), kept: after.length, dropped: before.length - after.length });
  });
});

describe("kept bytes", () => {
  test("pass unchanged, with odd numbers, escapes and white space", () => {
    const odd =
      '{ "spec":{"n":9007199254740993,"f":1.50e+1,"s":"\\u0041\\"}{"},\n"metadata" : {"namespace":"mine" , "name":"a"} }';
    expect(filter(list(item("foreign", "x"), odd)).text).toBe(list(odd));
  });

  test("of a pretty-printed list stay pretty-printed", () => {
    const pretty = (...items: object[]) => JSON.stringify({ kind: "PodList", items }, null, 2);
    const { text } = filter(pretty(item("mine", "a"), item("foreign", "x"), item("mine", "b")));
    expect(text).toBe(pretty(item("mine", "a"), item("mine", "b")));
  });

  test("are identical to the input when nothing is dropped", () => {
    const body =
      '{ "kind" : "PodList" ,\n "items" : [ {"metadata":{"namespace":"mine"}} , {"metadata":{"namespace":"mine"}}\t] } \n';
    expect(filter(body).text).toBe(body);
  });
});

describe("the list's metadata", () => {
  test("loses remainingItemCount before the items and keeps continue and resourceVersion", () => {
    const body = '{"metadata":{"resourceVersion":"7","continue":"abc","remainingItemCount":12},"items":[]}';
    expect(filter(body).text).toBe('{"metadata":{"resourceVersion":"7","continue":"abc"},"items":[]}');
  });

  test("loses remainingItemCount after the items when an item was dropped, as in a custom resource's list", () => {
    const body = (items: object[], meta: string) =>
      `{"apiVersion":"x/v1","items":${JSON.stringify(items)},"kind":"FooList","metadata":{${meta}}}`;
    const meta = '"continue":"c","remainingItemCount":3,"resourceVersion":"7"';
    expect(filter(body([item("foreign", "x")], meta)).text).toBe(body([], '"continue":"c","resourceVersion":"7"'));
    expect(filter(body([item("mine", "a")], meta)).text).toBe(body([item("mine", "a")], meta));
  });

  test.each([
    ['{"remainingItemCount":3,"a":1}', '{"a":1}'],
    ['{"remainingItemCount":3}', "{}"],
    ['{"a":1,"remainingItemCount":3}', '{"a":1}'],
    ['{"remainingItemCount":3,"RemainingItemCount":4}', "{}"],
    ['{"a":1,"remaining\\u0049temCount":3,"remainingItemCount":4,"b":2}', '{"a":1,"b":2}'],
    ['{"a":{"remainingItemCount":3}}', '{"a":{"remainingItemCount":3}}'],
  ])("%s becomes %s", (before, after) => {
    expect(filter(`{"metadata":${before},"items":[]}`).text).toBe(`{"metadata":${after},"items":[]}`);
  });

  test("passes items that are null", () => {
    expect(filter('{"items":null,"metadata":{}}').text).toBe('{"items":null,"metadata":{}}');
  });
});

describe("an item is filtered by its own metadata", () => {
  test("also when decoys come before it", () => {
    const decoys = {
      data: { metadata: { namespace: "mine" }, items: [{ metadata: { namespace: "mine" } }] },
      text: '"metadata":{"namespace":"mine"}',
    };
    const decoyed = {
      ...decoys,
      metadata: { annotations: { namespace: "mine", name: "mine" }, namespace: "foreign", name: "x" },
    };
    expect(filter(list(decoyed)).dropped).toBe(1);
    expect(filter(list({ spec: { metadata: { namespace: "foreign" } }, metadata: { namespace: "mine" } })).kept).toBe(1);
  });

  test("with escapes in keys and values resolved", () => {
    const escaped = '{"met\\u0061data":{"n\\u0061mespace":"m\\u0069ne","name":"a"}}';
    expect(filter(list(escaped)).text).toBe(list(escaped));
    expect(filter(list('{"metadata":{"namespace":"mine\\u0000"}}')).dropped).toBe(1);
  });

  test("also when an escape makes it differ from the previous namespace's bytes", () => {
    const spelled = (namespace: string) => `{"metadata":{"namespace":"${namespace}"}}`;
    const seen: string[] = [];
    filter(list(spelled(String.raw`a\\u0062`), spelled(String.raw`a\u0062`)), ({ namespace }) => seen.push(namespace) > 0);
    expect(seen.slice(0, 2)).toEqual([String.raw`a\u0062`, "ab"]);
  });

  test("and a cluster-scoped object has an empty namespace", () => {
    const seen: ItemMeta[] = [];
    filter(list({ metadata: { name: "node" } }), (meta) => seen.push({ ...meta }) > 0);
    expect(seen[0]).toEqual({ namespace: "", name: "node" });
  });

  test.each([
    ["without metadata", "{}"],
    ["with metadata that is null", '{"metadata":null}'],
    ["that is null", "null"],
    ["that is a number", "17"],
    ["that is a string", '"mine"'],
    ["with metadata twice", '{"metadata":{"namespace":"mine"},"metadata":{"namespace":"mine"}}'],
    ["with metadata in another case", '{"metadata":{"namespace":"mine"},"Metadata":{"namespace":"foreign"}}'],
    ["with metadata in another case only", '{"METADATA":{"namespace":"mine"}}'],
    ["with an escaped second metadata", '{"metadata":{"namespace":"mine"},"\\u006detadata":{"namespace":"foreign"}}'],
    ["with the namespace twice", '{"metadata":{"namespace":"foreign","namespace":"mine"}}'],
    ["with the namespace in another case", '{"metadata":{"namespace":"mine","nameSpace":"foreign"}}'],
    ["with the namespace under a long s", '{"metadata":{"namespace":"mine","name\u017fpace":"foreign"}}'],
    ["with the name twice", '{"metadata":{"namespace":"mine","name":"a","name":"b"}}'],
    ["with a namespace that is no string", '{"metadata":{"namespace":["mine"]}}'],
    ["with a namespace that is null", '{"metadata":{"namespace":null}}'],
    ["with a lone surrogate in the namespace", '{"metadata":{"namespace":"\\ud800"}}'],
  ])("an item %s is dropped and counted", (_, text) => {
    const all = filter(list(text, item("mine", "a")), ({ namespace }) => namespace !== "foreign");
    expect(all).toEqual({ text: list(item("mine", "a")), kept: 1, dropped: 1 });
  });
});

describe("a Table", () => {
  const row = (namespace: string, name: string) => ({
    cells: [name, "mine"],
    object: { kind: "PartialObjectMetadata", metadata: { name, namespace } },
  });
  const table = (...rows: object[]) =>
    `${JSON.stringify({ kind: "Table", apiVersion: "meta.k8s.io/v1", metadata: { resourceVersion: "7" }, columnDefinitions: [{ name: "Name" }], rows })}\n`;

  test("is filtered by its rows' objects", () => {
    expect(filter(table(row("foreign", "x"), row("mine", "a"), row("foreign", "y"))).text).toBe(table(row("mine", "a")));
  });

  test("loses rows without metadata, as with includeObject=None", () => {
    expect(filter(table({ cells: ["a"] }, { cells: ["b"], object: null }, row("mine", "a"))).text).toBe(table(row("mine", "a")));
  });

  test("loses a row with two objects", () => {
    const twice = '{"object":{"metadata":{"namespace":"mine"}},"object":{"metadata":{"namespace":"foreign"}}}';
    expect(filter(`{"kind":"Table","rows":[${twice}]}`).text).toBe('{"kind":"Table","rows":[]}');
  });
});

describe("a document that is not a list", () => {
  test("passes unchanged if it is a Status", () => {
    const status = '{"kind":"Status","apiVersion":"v1","metadata":{"remainingItemCount":1},"message":"items: []","code":403}\n';
    expect(filter(status)).toEqual({ text: status, kept: 0, dropped: 0 });
  });

  test.each([
    ["a single object", '{"kind":"Pod","apiVersion":"v1","metadata":{"namespace":"mine"}}'],
    ["a document with two kinds", '{"kind":"Status","kind":"Pod","apiVersion":"v1"}'],
    ["a custom resource named Status", '{"kind":"Status","apiVersion":"example.com/v1","spec":{}}'],
    ["an object whose items are an object", '{"kind":"Foo","items":{"a":{}}}'],
    ["an empty object", "{}"],
  ])("%s is refused before a byte has passed", (_, body) => {
    const slices: Uint8Array[] = [];
    const one = createListFilter("json", () => true);
    expect(() => {
      one.push(Buffer.from(body), (slice) => slices.push(slice));
      one.end((slice) => slices.push(slice));
    }).toThrow(expect.objectContaining({ code: "CODEC_NOT_A_LIST" }));
    expect(slices).toEqual([]);
  });
});

describe("errors", () => {
  test.each([
    ["an array", "[]"],
    ["text", "hello"],
    ["items twice", '{"items":[],"items":[]}'],
    ["items in another case", '{"Items":[]}'],
    ["text behind the document", '{"items":[]} {}'],
    ["a missing comma", '{"items":[{"metadata":{}} {"metadata":{}}]}'],
    ["a lost quote", '{"items":[{"metadata":{"namespace":"mine},"a":"b"}]}'],
    ["brackets that do not match", '{"items":[{"spec":[1}],"metadata":{"namespace":"mine"}}]}'],
    ["a key that is no string", '{"items":[{1:2}]}'],
    ["a trailing colon", '{"items":[{"a"}]}'],
  ])("%s is malformed", (_, body) => {
    expect(code(body)).toBe("CODEC_MALFORMED");
    expect(code([...body])).toBe("CODEC_MALFORMED");
  });

  test("an empty body is truncated", () => {
    expect(code("")).toBe("CODEC_TRUNCATED");
  });

  test("an item over the bound is too large, however it is split", () => {
    const body = list(item("foreign", "x", { data: "x".repeat(3000) }));
    expect(code(body, { maxItemBytes: 2000 })).toBe("CODEC_TOO_LARGE");
    expect(code([...body], { maxItemBytes: 2000 })).toBe("CODEC_TOO_LARGE");
    expect(code(body, { maxItemBytes: 4000 })).toBe("none");
  });

  test("a document with too many bytes before its items is too large", () => {
    expect(code(`{"kind":"Pod","spec":"${"x".repeat(5000)}`, { maxItemBytes: 2000 })).toBe("CODEC_TOO_LARGE");
  });

  test("endless nesting is malformed", () => {
    expect(code(`{"items":[${"[".repeat(20_000)}`)).toBe("CODEC_MALFORMED");
  });
});

test("kept bytes leave while the list still arrives, and few bytes are held", () => {
  const one = createListFilter("json", mine);
  let emitted = 0;
  const emit = (slice: Uint8Array): void => {
    emitted += slice.length;
  };
  const text = JSON.stringify(item("mine", "a", { data: "x".repeat(500) }));
  one.push(Buffer.from('{"items":['), emit);
  for (let index = 0; index < 100; index++) one.push(Buffer.from(`${index === 0 ? "" : ","}${text}`), emit);
  expect(emitted).toBe(10 + 100 * text.length + 99);
});

test("a deeply nested object uses no stack, walked or skipped", () => {
  const deep = (levels: number) => `${'{"metadata":['.repeat(levels / 2)}1${"]}".repeat(levels / 2)}`;
  const text = (levels: number) => `{"items":[{"spec":${deep(levels)},"metadata":{"namespace":"mine","x":${deep(levels)}}}]}`;
  expect(filter(text(9_990)).kept).toBe(1);
  expect(code(text(10_000))).toBe("CODEC_MALFORMED");
});

test("an object of eight megabytes in small chunks is copied a few times, not once for each chunk", () => {
  const body = Buffer.from(list(item("mine", "a", { data: { a: "x".repeat(4e6), b: Array.from({ length: 1e6 }, () => 1) } })));
  const chunks = Array.from({ length: Math.ceil(body.length / 1_400) }, (_, index) =>
    body.subarray(index * 1_400, (index + 1) * 1_400),
  );
  expect(runFilter(createListFilter("json", mine), chunks).equals(body)).toBe(true);
});

test.each(["kind", "metadata"])("a key %s that is split between chunks is read as that key", (key) => {
  const body = Buffer.from(`{"items":[],"${key}":{"remainingItemCount":1},"\\u006bind":"x"}`);
  for (let cut = 1; cut < body.length; cut++) {
    const one = createListFilter("json", mine);
    expect(runFilter(one, [body.subarray(0, cut), body.subarray(cut)]).equals(body)).toBe(true);
  }
});

test("a string of a megabyte full of quotes and backslashes is skipped as a whole, in chunks of any size", () => {
  const body = Buffer.from(
    list(item("mine", "a", { data: '\\"}],"metadata":{"namespace":"foreign"}'.repeat(30_000) }), item("foreign", "x")),
  );
  const chunks = Array.from({ length: Math.ceil(body.length / 1399) }, (_, index) =>
    body.subarray(index * 1399, (index + 1) * 1399),
  );
  const one = createListFilter("json", mine);
  expect(JSON.parse(runFilter(one, chunks).toString()).items).toHaveLength(1);
  expect(one.counts.dropped).toBe(1);
});
