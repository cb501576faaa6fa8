// `npm run demo` without a terminal, as in CI: its output and its end, and that no process or file remains. Its other acts:
// test/nightly/demo-acts.test.ts.
import { afterEach, expect, test } from "vitest";
import { DEMO_BUDGET_MS, startDemo } from "../../support/demo-process.ts";
import { blocksOf, readDocument } from "../../support/doc-blocks.ts";
import { eventually } from "../../support/eventually.ts";
import { childrenOf, isAlive } from "../../support/processes.ts";

const CHILDREN = 8;
const closing: (() => void)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
});

function start(...args: string[]) {
  const demo = startDemo(...args);
  closing.push(demo.close);
  return demo;
}

/** What README.md shows of the output. */
function readmeLines(): string[] {
  const text = blocksOf(readDocument("README.md")).find(({ info }) => info === "text")?.text ?? "";
  const lines = text.split("\n").filter((line) => line !== "" && line !== "...");
  expect(lines.length).toBeGreaterThan(8);
  return lines;
}

/** Times, and how often somebody wrote, differ from run to run. */
function withoutFigures(text: string): string {
  return text.replaceAll(/\d+\.\d s|\(\d+\)/g, "N");
}

test("the demo prints every step and its result within a minute, without terminal codes", {
  timeout: DEMO_BUDGET_MS + 10_000,
}, async () => {
  const startedAt = performance.now();
  const { output, ended, leftovers } = start();
  const code = await ended;
  expect(output.stderr).toBe("");
  expect(code).toBe(0);
  expect(performance.now() - startedAt).toBeLessThan(DEMO_BUDGET_MS);
  for (const line of [
    /^1\/5 {2}Starting an API server/m,
    /^ +canary-eu +v2 +foo-operator-v2-0 +1$/m,
    /^ +team-a +default +foo-operator-[01] +1$/m,
    /^ +foo-operator +foo-operator-[01]$/m,
    /^ +foo-operator---v2 +foo-operator-v2-0$/m,
    /^ +foo-operator +True +3 of 3 proxies enforce route \d+$/m,
    /^ +canary-late +v2 +foo-operator-v2-0 +1$/m,
    /^4\/5 {2}Namespace team-b now has the label ns-type=canary-1: it moves from default to v2$/m,
    /^ +team-b +v2 +foo-operator-v2-0 +3$/m,
    /^ +403 Forbidden: ctrlmesh: .* namespace "canary-eu" belongs/m,
    /^ +default +team-a \(2\), team-b \(2\)$/m,
    /^ +v2 +canary-eu \(2\), canary-late \(2\), team-b \(\d\), team-c \(2\)$/m,
    /^ +writes outside of the writer's namespaces: 0$/m,
    /^ +Every step succeeded\. \d+\.\d s\.$/m,
    /: npm run demo -- sharding\n$/,
  ]) {
    expect(output.stdout).toMatch(line);
  }
  for (const line of readmeLines()) expect(withoutFigures(output.stdout)).toContain(withoutFigures(line));
  expect(output.stdout).not.toContain("\x1b");
  expect(leftovers()).toEqual([]);
});

test("the demo ends with 1 and the reason when a process dies, and leaves no process behind", {
  timeout: 2 * DEMO_BUDGET_MS,
}, async () => {
  const { pid, output, ended, leftovers } = start("--keep");
  await eventually(() => childrenOf(pid).length === CHILDREN || !isAlive(pid), DEMO_BUDGET_MS);
  const children = childrenOf(pid);
  const victim = children.find(({ command }) => command.includes("src/proxy/main.ts"));
  process.kill(victim?.pid ?? 0, "SIGKILL");
  expect(await ended).toBe(1);
  expect(output.stderr).toMatch(/^demo: failed: proxy of foo-operator-\S+ has ended/m);
  expect(children.filter((child) => isAlive(child.pid))).toEqual([]);
  expect(leftovers()).toEqual([]);
});

test("an interrupt during the start leaves no process behind", { timeout: 2 * DEMO_BUDGET_MS }, async () => {
  const { pid, ended, leftovers } = start();
  await eventually(() => childrenOf(pid).some(({ command }) => command.includes("src/proxy/main.ts")), DEMO_BUDGET_MS);
  const children = childrenOf(pid);
  process.kill(pid, "SIGTERM");
  expect(await ended).toBe(130);
  await eventually(() => children.every((child) => !isAlive(child.pid)));
  expect(leftovers()).toEqual([]);
});

test("the demo ends with 64 after wrong usage, and with 0 after --help", async () => {
  const wrong = start("--kept");
  expect(await wrong.ended).toBe(64);
  expect(wrong.output.stderr).toMatch(/^demo: Unknown option '--kept'/);
  const unknown = start("sharding", "more");
  expect(await unknown.ended).toBe(64);
  expect(unknown.output.stderr).toMatch(/^demo: Unknown act "sharding more"\n\nnpm run demo \[/);
  const help = start("--help");
  expect(await help.ended).toBe(0);
  expect(help.output.stdout).toContain("--keep");
});
