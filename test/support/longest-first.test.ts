import { existsSync, readdirSync, readFileSync } from "node:fs";
import { expect, it } from "vitest";

const SOURCE = readFileSync(new URL("./longest-first.ts", import.meta.url), "utf8");
const FILES = [...SOURCE.matchAll(/^ {2}"(.*)": \d+,$/gm)].map(([, file]) => `${file}.test.ts`);
const inTests = (path: string) => new URL(`../${path}`, import.meta.url);

it("the files that are ordered by their time exist", () => {
  expect(FILES.length).toBeGreaterThan(20);
  expect(FILES.filter((file) => !existsSync(inTests(file)))).toEqual([]);
});

it("every end-to-end file has a time, since one that began last would run by itself at the end", () => {
  const files = readdirSync(inTests("e2e")).map((name) => `e2e/${name}`);
  expect(files.filter((file) => !FILES.includes(file))).toEqual([]);
});
