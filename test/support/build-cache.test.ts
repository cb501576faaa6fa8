import { mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { cacheDir, isBuilt, makeRoom } from "./build-cache.ts";

const HOUR_MS = 60 * 60_000;
let home: string;
let before: string | undefined;

beforeEach(() => {
  before = process.env.XDG_CACHE_HOME;
  home = mkdtempSync(join(tmpdir(), "ctrlmesh-cache-"));
  process.env.XDG_CACHE_HOME = home;
});
afterEach(() => {
  if (before === undefined) delete process.env.XDG_CACHE_HOME;
  else process.env.XDG_CACHE_HOME = before;
  rmSync(home, { recursive: true, force: true });
});

const build = (name: string, hoursAgo: number) => {
  const path = join(cacheDir(), name);
  mkdirSync(path, { recursive: true });
  const at = new Date(Date.now() - hoursAgo * HOUR_MS);
  utimesSync(path, at, at);
  return path;
};

it("keeps programs for three days and images for six hours after their last use", () => {
  for (const name of ["kube", "image-proxy"]) for (const hours of [1, 7, 71, 73]) build(`${name}-${hours}`, hours);
  makeRoom();
  expect(readdirSync(cacheDir()).sort()).toEqual(["image-proxy-1", "kube-1", "kube-7", "kube-71"]);
});

it("counts every request as a use", () => {
  const path = build("image-proxy-old", 7);
  expect(isBuilt(path)).toBe(true);
  makeRoom();
  expect([isBuilt(path), isBuilt(join(cacheDir(), "image-proxy-other"))]).toEqual([true, false]);
});

it("creates the folder", () => {
  makeRoom();
  expect(readdirSync(cacheDir())).toEqual([]);
});
