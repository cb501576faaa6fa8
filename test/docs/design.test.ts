// docs/design.md shows where each step is, and where the promise is kept. A path that no longer exists sends the
// reader nowhere.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";

const text = readFileSync("docs/design.md", "utf8");
const named = [...new Set([...text.matchAll(/`([\w./-]+\.ts)`/g)].flatMap(([, path]) => path ?? []))];
const tree = ["src", "test", "lint"].flatMap((folder) =>
  readdirSync(folder, { recursive: true, encoding: "utf8" }).map((path) => `${folder}/${path}`),
);
/** The files of the layer that a reader adds. */
const isExample = (path: string) => /\bNAME\b/.test(path);

test("every path of src in docs/design.md exists", () => {
  const paths = named.filter((path) => path.startsWith("src/") && !isExample(path));
  expect(paths.length).toBeGreaterThan(0);
  expect(paths.filter((path) => !existsSync(path))).toEqual([]);
});

// The tables shorten a path to its end if its folder is clear.
test("every other file in docs/design.md exists", () => {
  const isThere = (name: string) => tree.some((path) => path === name || path.endsWith(`/${name}`));
  expect(named.filter((path) => !isExample(path) && !isThere(path))).toEqual([]);
});

test("every function of the table of the promise is in its file", () => {
  const rows = [...text.matchAll(/`(\w+)` in `(src\/[\w./-]+\.ts)`/g)];
  expect(rows.length).toBeGreaterThan(8);
  const isThere = ([, name, path = ""]: RegExpMatchArray) =>
    existsSync(path) && new RegExp(`^(export )?(async )?(function|const) ${name}\\b`, "m").test(readFileSync(path, "utf8"));
  expect(rows.filter((row) => !isThere(row)).map(([text]) => text)).toEqual([]);
});
