import { mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { buildOnce, cacheDir, isBuilt, makeRoom } from "./build-cache.ts";

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

it("builds once for all who ask at the same time, and again after a failure", async () => {
  const result = join(cacheDir(), "program");
  let builds = 0;
  const make = async (partial: string) => {
    builds++;
    await Promise.resolve();
    if (builds === 1) throw new Error("no network");
    mkdirSync(partial);
  };
  const both = await Promise.allSettled([buildOnce(result, make), buildOnce(result, make)]);
  expect(both.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  await Promise.all([buildOnce(result, make), buildOnce(result, make)]);
  await buildOnce(result, make);
  expect([builds, isBuilt(result)]).toEqual([2, true]);
});
