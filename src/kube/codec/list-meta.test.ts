import { describe, expect, it } from "vitest";
import { envelope } from "../../../test/support/kube-protobuf.ts";
import { readListMeta } from "./codec.ts";

const json = (metadata: object) =>
  Buffer.from(JSON.stringify({ kind: "PodList", items: [{ metadata: { name: "x" } }], metadata }));
const pod = Buffer.from([0x0a, 0x00]);

describe("the metadata of a list of one object", () => {
  it.each([
    ["a page", { resourceVersion: "12", continue: "abc", remainingItemCount: 9_999 }, [12n, true, 9_999]],
    ["a page without the count", { resourceVersion: "12", continue: "abc" }, [12n, true, undefined]],
    ["a whole list", { resourceVersion: "12" }, [12n, false, undefined]],
    ["a whole list with an empty token", { continue: "", resourceVersion: "12" }, [12n, false, undefined]],
    ["a version of another storage", { resourceVersion: "x:1" }, [undefined, false, undefined]],
  ])("%s, as JSON", (_name, metadata, expected) => {
    const { version, continues, remaining } = readListMeta("json", json(metadata));
    expect([version, continues, remaining]).toEqual(expected);
  });

  it("a page, as protobuf", () => {
    const body = envelope("v1", "PodList", [
      [
        1,
        [
          [1, ""],
          [2, "12"],
          [3, "abc"],
          [4, 9_999],
        ],
      ],
      [2, pod],
    ]);
    expect(readListMeta("protobuf", body)).toEqual({ version: 12n, continues: true, remaining: 9_999 });
  });

  it("a whole list, as protobuf", () => {
    const body = envelope("v1", "PodList", [
      [
        1,
        [
          [1, ""],
          [2, "12"],
          [3, ""],
        ],
      ],
      [2, pod],
    ]);
    expect(readListMeta("protobuf", body)).toEqual({ version: 12n, continues: false, remaining: undefined });
  });

  it("of a document that is no object is malformed", () => {
    expect(() => readListMeta("protobuf", Buffer.from("x"))).toThrow("prefix");
  });
});
