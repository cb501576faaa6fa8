// Markdown and YAML with the marks of a merge conflict pass every other check.
import { spawnSync } from "node:child_process";
import { expect, test } from "vitest";

test("no file has the marks of a merge conflict", () => {
  const { status, stdout } = spawnSync("git", ["grep", "-nE", "^(<{7}|>{7}) "], { encoding: "utf8" });
  expect(stdout).toBe("");
  expect(status, "git grep has searched, and found nothing").toBe(1);
});
