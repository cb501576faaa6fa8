// The import graph of src has no cycles: neither between files nor between folders. A cycle cannot be read or changed one
// part at a time. Type imports count, since a reader follows them too.
import { readdirSync, readFileSync } from "node:fs";
import { posix } from "node:path";
import { expect, test } from "vitest";

const IMPORT = /\b(?:from |import\()"(\.[^"]+)"/g;

type Graph = ReadonlyMap<string, ReadonlySet<string>>;

const files = readdirSync("src", { recursive: true, encoding: "utf8" })
  .map((file) => `src/${file}`)
  .filter((file) => /\.tsx?$/.test(file) && !file.endsWith(".test.ts"));

test("no file imports itself through other files", () => {
  expect(cycles(graphOf((file) => file))).toEqual([]);
});

test("no folder imports itself through other folders", () => {
  expect(cycles(graphOf((file) => posix.dirname(file)))).toEqual([]);
});

/** The imports between parts of src; `partOf` names the part that a file belongs to. */
function graphOf(partOf: (file: string) => string): Graph {
  const graph = new Map<string, Set<string>>();
  for (const file of files) {
    const from = partOf(file);
    const targets = graph.get(from) ?? new Set();
    graph.set(from, targets);
    for (const [, path] of readFileSync(file, "utf8").matchAll(IMPORT)) {
      const to = partOf(posix.join(posix.dirname(file), path as string));
      if (to !== from) targets.add(to);
    }
  }
  return graph;
}

/** The groups of parts that reach each other. */
function cycles(graph: Graph): string[][] {
  const reached = new Map([...graph.keys()].map((part) => [part, reachableFrom(graph, part)]));
  const groups = new Map<string, string[]>();
  for (const [part, parts] of reached) {
    const group = [...parts].filter((other) => reached.get(other)?.has(part)).sort();
    if (group.length > 0) groups.set(group.join(), group);
  }
  return [...groups.values()];
}

function reachableFrom(graph: Graph, start: string): ReadonlySet<string> {
  const reached = new Set<string>();
  const open = [start];
  for (let part = open.pop(); part !== undefined; part = open.pop()) {
    for (const next of graph.get(part) ?? []) {
      if (reached.has(next)) continue;
      reached.add(next);
      open.push(next);
    }
  }
  return reached;
}
