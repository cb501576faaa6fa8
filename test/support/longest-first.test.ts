import { existsSync, readdirSync, readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { inStep } from "./longest-first.ts";

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

it("projects go in step, whatever their files take: each has had the same part of its time, but for one file", () => {
  const files = [30, 20, 10, 9, 3, 3, 3, 1, 1].map((seconds, at) => ({
    name: `${at}`,
    project: at % 2 ? "waits" : "computes",
    seconds,
  }));
  const placeOf = inStep(
    files,
    ({ project }) => project,
    ({ seconds }) => seconds,
  );
  const totalOf = (of: typeof files) => of.reduce((sum, { seconds }) => sum + seconds, 0);
  const partOf = (project: string, begun: typeof files) => {
    const own = files.filter((file) => file.project === project);
    return [
      totalOf(own.filter((file) => begun.includes(file))) / totalOf(own),
      Math.max(...own.map(({ seconds }) => seconds)) / totalOf(own),
    ] as const;
  };
  const ordered = files.toSorted((a, b) => placeOf(a) - placeOf(b));
  for (let count = 1; count <= ordered.length; count++) {
    const begun = ordered.slice(0, count);
    const [[waits, oneWaits], [computes, oneComputes]] = [partOf("waits", begun), partOf("computes", begun)];
    expect(Math.abs(waits - computes)).toBeLessThanOrEqual(Math.max(oneWaits, oneComputes));
  }
});
