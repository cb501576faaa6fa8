import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { cacheDir } from "../test/support/build-cache.ts";
import { ROOT } from "./run-command.ts";
import { storedResults } from "./stored-results.ts";
import type { Results } from "./test-results.ts";

const PASSED: Results = { passed: 3, failures: [], skipped: [] };
let dir: string;
let source: string;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "ctrlmesh-stored-"));
  vi.stubEnv("XDG_CACHE_HOME", join(dir, "cache"));
  vi.stubEnv("NIGHTLY", "false");
  vi.spyOn(console, "log").mockImplementation(() => undefined);
  mkdirSync(join(dir, "source"));
  source = join(dir, "source/a.go");
  writeFileSync(source, "one");
});
afterEach(() => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
  rmSync(dir, { recursive: true, force: true });
});

const stored = (also = "go1") => storedResults("go test of a", { sources: [relative(ROOT, join(dir, "source"))], also });

it("counts stored results of the same sources and reports that in a line", () => {
  expect(stored().read()).toBeUndefined();
  stored().keep(PASSED);
  expect(stored().read()).toEqual(PASSED);
  expect(console.log).toHaveBeenCalledExactlyOnceWith(
    expect.stringMatching(/^NOT RUN AGAIN \(sources unchanged since \d{4}-.*Z\): go test of a, 3 passed$/),
  );
});

it("counts nothing for other sources, another compiler, or by night", () => {
  stored().keep(PASSED);
  expect(stored("go2").read()).toBeUndefined();
  vi.stubEnv("NIGHTLY", "true");
  expect(stored().read()).toBeUndefined();
  vi.stubEnv("NIGHTLY", "false");
  writeFileSync(source, "two");
  expect(stored().read()).toBeUndefined();
});

it("keeps nothing of a run with a failure or a skipped test", () => {
  stored().keep({ ...PASSED, failures: ["it broke"] });
  stored().keep({ ...PASSED, skipped: ["that one"] });
  expect(stored().read()).toBeUndefined();
  stored().keep(PASSED);
  expect(readdirSync(cacheDir())).toEqual([expect.stringMatching(/^results-go-test-of-a-[0-9a-f]{16}\.json$/)]);
});
