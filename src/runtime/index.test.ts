import { readdirSync, readFileSync } from "node:fs";
import { expect, it } from "vitest";

const ROOT = new URL("../../", import.meta.url);
const read = (path: string) => readFileSync(new URL(path, ROOT), "utf8");

it("package.json exports this file as ctrlmesh/runtime, and nothing else", () => {
  const { exports } = JSON.parse(read("package.json")) as { exports: unknown };
  expect(exports).toEqual({ "./runtime": "./src/runtime/index.ts" });
});

it("the example operator imports nothing of src but this file", () => {
  const files = readdirSync(new URL("examples/greeting-operator/", ROOT)).filter((name) => name.endsWith(".ts"));
  const imports = files.flatMap((name) => [
    ...read(`examples/greeting-operator/${name}`).matchAll(/from "([^"]*\/src\/[^"]*)"/g),
  ]);
  expect(new Set(imports.map(([, path]) => path))).toEqual(new Set(["../../src/runtime/index.ts"]));
});
