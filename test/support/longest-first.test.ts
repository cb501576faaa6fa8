import { existsSync, readFileSync } from "node:fs";
import { expect, it } from "vitest";

it("the files that are ordered by their time exist", () => {
  const source = readFileSync(new URL("./longest-first.ts", import.meta.url), "utf8");
  const files = [...source.matchAll(/^ {2}"(.*)": \d+,$/gm)].map(([, file]) => `../${file}.test.ts`);
  expect(files.length).toBeGreaterThan(20);
  expect(files.filter((file) => !existsSync(new URL(file, import.meta.url)))).toEqual([]);
});
