// `npm run demo` as a child without a terminal, as in CI. The tests check its output and its end, and that no process or file remains.
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, expect, test } from "vitest";
import { createKubeClient } from "../../../src/kube/client/client.ts";
import { STATEFUL_SETS } from "../../../src/kube/client/resources.ts";
import { loadConnection } from "../../../src/runtime/kubeconfig.ts";
import { blocksOf, readDocument } from "../../support/doc-blocks.ts";
import { eventually } from "../../support/eventually.ts";

const MAIN = fileURLToPath(new URL("../../../examples/demo/main.ts", import.meta.url));
const BUDGET_MS = 60_000;
const CHILDREN = 8;
const closing: (() => void)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
});

function startDemo(...args: string[]) {
  const temporary = mkdtempSync(join(tmpdir(), "ctrlmesh-demo-test-"));
  const child = spawn(process.execPath, [MAIN, ...args], {
    env: { ...process.env, TMPDIR: temporary },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const pid = child.pid ?? 0;
  const output = { stdout: "", stderr: "" };
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    output.stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    output.stderr += text;
  });
  closing.push(() => {
    child.kill("SIGKILL");
    rmSync(temporary, { recursive: true, force: true });
  });
  const ended = once(child, "close").then(() => child.exitCode);
  return { pid, output, ended, leftovers: () => readdirSync(temporary) };
}

/** The processes that a process has started: pid and command line. */
function childrenOf(pid: number): { readonly pid: number; readonly command: string }[] {
  const rows = execFileSync("ps", ["-A", "-o", "pid=,ppid=,args="], { encoding: "utf8" }).split("\n");
  return rows.flatMap((row) => {
    const [, child, parent, command] = /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(row) ?? [];
    return Number(parent) === pid && command !== undefined ? [{ pid: Number(child), command }] : [];
  });
}

async function patchStatefulSet(kubeconfig: string, replicas: number): Promise<void> {
  const client = createKubeClient(await loadConnection({ kubeconfig, env: {}, userAgent: "test" }));
  await client.patch(
    STATEFUL_SETS,
    { namespace: "foo-system", name: "foo-operator" },
    { type: "merge", body: { spec: { replicas } } },
  );
  await client.close();
}

const isAlive = (pid: number) => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};

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
  timeout: BUDGET_MS + 10_000,
}, async () => {
  const startedAt = performance.now();
  const { output, ended, leftovers } = startDemo();
  const code = await ended;
  expect(output.stderr).toBe("");
  expect(code).toBe(0);
  expect(performance.now() - startedAt).toBeLessThan(BUDGET_MS);
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

test("the second act scales a sharded StatefulSet up and down, and no shard writes late; with --keep it stays up until an interrupt", {
  timeout: 3 * BUDGET_MS,
}, async () => {
  const { pid, output, ended, leftovers } = startDemo("sharding", "--keep");
  await eventually(() => output.stdout.includes("get foos -A") || !isAlive(pid), 2 * BUDGET_MS);
  expect(output.stderr).toBe("");
  for (const line of [
    /^1\/4 {2}Starting an API server/m,
    /^ +shard foo-0-canary: foo-operator-0$/m,
    /^ +foo-0-canary +1\/1 +foo-operator-0 +2 +2$/m,
    /^ +foo-operator +True +6 to 7 +4 of 4 proxies enforce route \d+$/m,
    /^3\/4 {2}kubectl scale statefulset foo-operator --replicas=6: from 3 to 5 normal shards/m,
    /^ +foo-5-normal +1\/1 +foo-operator-5 +4 +4$/m,
    /^ +foo-operator +True +4 +6 of 6 proxies enforce route \d+$/m,
    /^4\/4 {2}kubectl scale statefulset foo-operator --replicas=4: from 5 to 3 normal shards/m,
    /^ +from 3 to 5 +\d+ +8$/m,
    /^ +from 5 to 3 +8 +8$/m,
    /^ +writes by a shard after another one had taken the namespace over: 0$/m,
    /^ +Every step succeeded\. \d+\.\d s\.$/m,
    /^kubectl --kubeconfig \S+\/foo-operator-0\/kubeconfig get foos -A$/m,
  ]) {
    expect(output.stdout).toMatch(line);
  }
  const page = /^dashboard: (http:\S+)$/m.exec(output.stdout)?.[1] ?? "";
  expect(page).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/[0-9a-f]{32}\/#\/map\?app=foo-system\/foo-operator$/);
  expect(await (await fetch(page)).text()).toContain("<title>Controller Mesh</title>");
  // It plays the StatefulSet controller as long as it is up, also for pods whose names have been in use.
  await patchStatefulSet(/^kubectl --kubeconfig (\S+) get shardingconfigs -A$/m.exec(output.stdout)?.[1] ?? "", 6);
  await eventually(() => childrenOf(pid).length === 2 + 2 * 6 || !isAlive(pid), BUDGET_MS);
  expect(output.stderr).toBe("");
  const children = childrenOf(pid);
  process.kill(pid, "SIGINT");
  expect(await ended).toBe(130);
  expect(children.filter((child) => isAlive(child.pid))).toEqual([]);
  expect(leftovers()).toEqual([]);
});

test("the act of the webhooks shows that the owner's pod answers, whichever pod is called", {
  timeout: 2 * BUDGET_MS,
}, async () => {
  const { output, ended, leftovers } = startDemo("webhooks");
  expect(await ended).toBe(0);
  expect(output.stderr).toBe("");
  for (const line of [
    /^ +canary-eu\/picked-default +v2 +foo-operator-0 +foo-operator-v2-0$/m,
    /^ +team-a\/picked-v2 +default +foo-operator-v2-0 +foo-operator-0$/m,
    /^ +\d+ calls, none failed: \d+ by foo-operator-0, then \d+ by foo-operator-v2-0\.$/m,
    /^ +team-c: 503 ctrlmesh: /m,
    /^ +team-a: defaulted by foo-operator-0$/m,
    /^ +Foos that a pod of another subset has defaulted: 0$/m,
  ]) {
    expect(output.stdout).toMatch(line);
  }
  expect(leftovers()).toEqual([]);
});

test("the demo ends with 1 and the reason when a process dies, and leaves no process behind", {
  timeout: 2 * BUDGET_MS,
}, async () => {
  const { pid, output, ended, leftovers } = startDemo("--keep");
  await eventually(() => childrenOf(pid).length === CHILDREN || !isAlive(pid), BUDGET_MS);
  const children = childrenOf(pid);
  const victim = children.find(({ command }) => command.includes("src/proxy/main.ts"));
  process.kill(victim?.pid ?? 0, "SIGKILL");
  expect(await ended).toBe(1);
  expect(output.stderr).toMatch(/^demo: failed: proxy of foo-operator-\S+ has ended/m);
  expect(children.filter((child) => isAlive(child.pid))).toEqual([]);
  expect(leftovers()).toEqual([]);
});

test("an interrupt during the start leaves no process behind", { timeout: 2 * BUDGET_MS }, async () => {
  const { pid, ended, leftovers } = startDemo();
  await eventually(() => childrenOf(pid).some(({ command }) => command.includes("src/proxy/main.ts")), BUDGET_MS);
  const children = childrenOf(pid);
  process.kill(pid, "SIGTERM");
  expect(await ended).toBe(130);
  await eventually(() => children.every((child) => !isAlive(child.pid)));
  expect(leftovers()).toEqual([]);
});

test("the demo ends with 64 after wrong usage, and with 0 after --help", async () => {
  const wrong = startDemo("--kept");
  expect(await wrong.ended).toBe(64);
  expect(wrong.output.stderr).toMatch(/^demo: Unknown option '--kept'/);
  const unknown = startDemo("sharding", "more");
  expect(await unknown.ended).toBe(64);
  expect(unknown.output.stderr).toMatch(/^demo: Unknown act "sharding more"\n\nnpm run demo \[/);
  const help = startDemo("--help");
  expect(await help.ended).toBe(0);
  expect(help.output.stdout).toContain("--keep");
});
