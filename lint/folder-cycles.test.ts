// The folders of src depend on each other in one direction. Biome knows single imports only, so this test reads all of them.
// Invariant: no two folders import each other, directly or through others.
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { posix } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

const ROOT = fileURLToPath(new URL("../", import.meta.url));

/** Folders in cycles that were there before this test. Take them out as they are mended; put none in. */
const KNOWN = [
  "src/localkube",
  "src/localkube/patch",
  "src/proxy",
  "src/proxy/debug",
  "src/proxy/layers",
  "src/proxy/layers/election",
  "src/proxy/layers/isolate",
];

it("no folder of src depends on itself through other folders", () => {
  expect(foldersInCycles(importsByFolder()).filter((folder) => !KNOWN.includes(folder))).toEqual([]);
});

type Graph = ReadonlyMap<string, ReadonlySet<string>>;

function importsByFolder(): Graph {
  const graph = new Map<string, Set<string>>();
  for (const file of sourceFiles()) {
    const folder = posix.dirname(file);
    const imported = graph.get(folder) ?? new Set();
    graph.set(folder, imported);
    for (const [, path = ""] of readFileSync(posix.join(ROOT, file), "utf8").matchAll(/(?:from|import\() ?"(\.[^"]+)"/g)) {
      const target = posix.dirname(posix.join(folder, path));
      if (target !== folder) imported.add(target);
    }
  }
  return graph;
}

function sourceFiles(): string[] {
  const listed = execFileSync("git", ["ls-files", "src/*.ts"], { cwd: ROOT, encoding: "utf8" }).split("\n");
  return listed.filter((file) => file !== "" && !file.endsWith(".test.ts") && existsSync(posix.join(ROOT, file)));
}

function foldersInCycles(graph: Graph): string[] {
  return [...graph.keys()].filter((folder) => reachableFrom(folder, graph).has(folder)).sort();
}

function reachableFrom(start: string, graph: Graph): ReadonlySet<string> {
  const reached = new Set<string>();
  const open = [start];
  for (let folder = open.pop(); folder !== undefined; folder = open.pop()) {
    for (const next of graph.get(folder) ?? []) {
      if (reached.has(next)) continue;
      reached.add(next);
      open.push(next);
    }
  }
  return reached;
}
