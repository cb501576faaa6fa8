import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { createExpressionMatcher } from "./expression-matcher.ts";

it("answers questions that are asked at one time, each for itself", async () => {
  const match = createExpressionMatcher();
  const [a, b, none] = await Promise.all([
    match(["^a", "z$"], ["ab", "bz"], 1_000),
    match(["^a"], ["b"], 1_000),
    match([], ["b"], 1_000),
  ]);
  expect([a?.("^a", "ab"), a?.("z$", "ab"), a?.("z$", "bz"), b?.("^a", "b"), none?.("^a", "b")]).toEqual([
    true,
    false,
    true,
    false,
    false,
  ]);
});

it("its thread does not keep the process alive", async () => {
  const program = `
    const { createExpressionMatcher } = await import(${JSON.stringify(new URL("./expression-matcher.ts", import.meta.url).href)});
    const wait = setInterval(() => undefined, 1_000);
    const matches = await createExpressionMatcher()(["^a"], ["a"], 1_000);
    clearInterval(wait);
    console.log(matches("^a", "a"));`;
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", program], { timeout: 15_000 });
  expect(stdout.trim()).toBe("true");
});
