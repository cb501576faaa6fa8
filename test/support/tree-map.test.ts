import { expect, it } from "vitest";
import { anchorsOf, linksOf, readTreeMap } from "./tree-map.ts";

it("reads the block with src/ and joins indented lines", () => {
  const markdown =
    "```sh\nnpm ci\n```\n\n```text\nsrc/base/   errors, clock\n            and log\ntest/       tests\nREADME.md   this\n```\n";
  expect(readTreeMap(markdown)).toEqual([
    { path: "src/base/", description: "errors, clock" },
    { path: "test/", description: "tests" },
    { path: "README.md", description: "this" },
  ]);
  expect(readTreeMap("no block\n```\nls\n```\n")).toBeUndefined();
});

it("finds links in prose, not in code", () => {
  expect(linksOf('[a](x.md) ![b](<y.png>) [c](z#h "title") `[d](no)`\n```\n[e](no)\n```\n')).toEqual(["x.md", "y.png", "z#h"]);
});

it("generates the same anchors as GitHub", () => {
  expect([...anchorsOf("# A `b` & c\n## Who owns what?\n## Who owns what?\n")]).toEqual([
    "a-b--c",
    "who-owns-what",
    "who-owns-what-1",
  ]);
});
