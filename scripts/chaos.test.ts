import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

const CHAOS = fileURLToPath(new URL("chaos.ts", import.meta.url));

it.each([
  ["--bogus", "Unknown option '--bogus'"],
  ["--minutes=no", "--minutes is no; a number above 0 is allowed"],
  ["--seed=1.5", "--seed is 1.5; an integer is allowed"],
])("chaos refuses %s with the reason and its usage and ends with 64", (argument, problem) => {
  const { status, stderr } = spawnSync(process.execPath, [CHAOS, argument], { encoding: "utf8" });
  expect(status).toBe(64);
  expect(stderr.startsWith(`chaos: ${problem}`)).toBe(true);
  expect(stderr).toContain("usage: npm run chaos");
  expect(stderr).not.toContain("    at ");
});
