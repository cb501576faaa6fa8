// Tests that all files of a volume change at once.
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { writeVolume } from "./atomic-files.ts";

let dir = "";
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "ctrlmesh-volume-"));
});
afterEach(() => rmSync(dir, { recursive: true }));

const write = (files: Record<string, string>) =>
  writeVolume(
    dir,
    new Map(Object.entries(files).map(([path, text]) => [path, { data: Buffer.from(text), mode: 0o644 }])),
    undefined,
  );
const names = () => readdirSync(dir).filter((name) => !name.startsWith(".."));

it("shows new files and folders and removes old ones", () => {
  write({ a: "1", "deep/b": "1" });
  expect([names(), readFileSync(join(dir, "deep/b"), "utf8")]).toEqual([["a", "deep"], "1"]);
  write({ a: "2", c: "2" });
  expect([names(), readFileSync(join(dir, "a"), "utf8")]).toEqual([["a", "c"], "2"]);
});

it("keeps one version", () => {
  for (const text of ["1", "2", "3"]) write({ a: text });
  expect(readdirSync(dir)).toHaveLength(3); // a, ..data and its version
});
