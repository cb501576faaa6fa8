// Comments in src mention files by name. A name that no longer exists sends the reader nowhere.
import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";

const COMMENT = /^\s*(?:\/\/|\/?\*).*$|\s\/\/ .*$/gm;
const FILE_NAME = /(?<![\w$}*{./-])(?:[\w-]+\/)*[\w-]+(?:\.test)?\.ts\b/g;

const tree = ["src", "test", "scripts", "bench", "lint", "docs", "proto"].flatMap((folder) =>
  readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((path) => !path.includes("node_modules"))
    .map((path) => `${folder}/${path}`),
);

test("every file that a comment in src mentions exists", () => {
  const sources = tree.filter((path) => path.startsWith("src/") && path.endsWith(".ts"));
  expect(
    sources.flatMap((path) =>
      mentions(path)
        .filter((name) => !exists(name))
        .map((name) => `${path}: ${name}`),
    ),
  ).toEqual([]);
});

function mentions(path: string): string[] {
  const comments = readFileSync(path, "utf8").match(COMMENT) ?? [];
  return comments.flatMap((comment) => comment.match(FILE_NAME) ?? []);
}

// A mention is a file name or the end of a path.
function exists(name: string): boolean {
  return tree.some((path) => path === name || path.endsWith(`/${name}`));
}
