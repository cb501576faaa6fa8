// `npm test`: builds what the tests need, runs vitest and the tests of the Go programs, and ends with one line
// "N passed, N failed" (", N skipped" if any). Invariant: the numbers come from the runners' reports; a runner that
// crashes, gives no report or runs nothing is a failure. Arguments go to vitest, and then vitest is all that runs. With
// CI=true a missing Go is a failure and so is every skipped test.
import { type SpawnOptions, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { GO_FLAGS, GO_PROGRAMS, goProgram, whyNoGo } from "../test/support/go-build.ts";
import {
  failure,
  type GoTestEvent,
  goTestResults,
  type Results,
  sum,
  summaryLine,
  type VitestReport,
  vitestResults,
} from "./test-results.ts";

const ROOT = fileURLToPath(new URL("../", import.meta.url));
const BIN = join(ROOT, "node_modules/.bin");
/** The tests start many processes of the same sources: what Node made of them once is used again. */
const COMPILE_CACHE = join(ROOT, "node_modules/.cache/node-compile");
const IS_CI = process.env.CI === "true";
const MINUTE_MS = 60_000;

/** Full names of tests that CI may skip. */
const ALLOWED_SKIPS: ReadonlySet<string> = new Set();

const durations: string[] = [];

async function main(vitestArgs: readonly string[]): Promise<void> {
  const parts: Results[] = [];
  const isWhole = vitestArgs.length === 0;
  const noGo = isWhole ? await whyNoGo() : undefined;
  if (isWhole && noGo === undefined)
    for (const program of GO_PROGRAMS) parts.push(await timed(`build ${program}`, () => build(program)));
  parts.push(await timed("vitest", () => runVitest(vitestArgs)));
  if (isWhole && noGo === undefined) for (const program of GO_PROGRAMS) parts.push(...(await runGo(program)));
  if (noGo !== undefined) parts.push(withoutGo(noGo));
  const total = sum(parts, { strict: IS_CI, allowedSkips: ALLOWED_SKIPS });
  console.log(`\n${durations.join("\n")}`);
  if (total.failures.length > 0)
    console.log(`\nFAILED\n${total.failures.map((line) => `  ${line.replaceAll(ROOT, "")}`).join("\n")}`);
  console.log(`\n${summaryLine(total)}`);
  process.exitCode = total.failures.length > 0 ? 1 : 0;
}

async function build(program: (typeof GO_PROGRAMS)[number]): Promise<Results> {
  try {
    await goProgram(program);
    return { passed: 0, failures: [], skipped: [] };
  } catch (error) {
    return failure(`building ${program}: ${error instanceof Error ? error.message : error}`);
  }
}

function withoutGo(why: string): Results {
  if (IS_CI) return failure(`the tests of the Go programs: ${why}`);
  console.log(`SKIPPED (${why}): the tests of ${GO_PROGRAMS.join(" and ")}`);
  return { passed: 0, failures: [], skipped: GO_PROGRAMS.map((program) => `go test ${program}`) };
}

async function runVitest(args: readonly string[]): Promise<Results> {
  const dir = await mkdtemp(join(tmpdir(), "ctrlmesh-report-"));
  const reportFile = join(dir, "vitest.json");
  try {
    const vitest = [join(ROOT, "node_modules/vitest/vitest.mjs"), "run", "--reporter=default", "--reporter=json"];
    const code = await run(process.execPath, [...vitest, `--outputFile.json=${reportFile}`, ...args], 40 * MINUTE_MS);
    const report = await readFile(reportFile, "utf8").catch(() => undefined);
    if (report === undefined) return failure(`vitest gave no report and ended with ${code}`);
    const results = vitestResults(JSON.parse(report) as VitestReport);
    // Errors outside of any test (an unhandled rejection) show in the exit code alone.
    if (code === 0 || results.failures.length > 0) return results;
    return { ...results, failures: [`vitest ended with ${code}, with no failed test: see its output above`] };
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

async function runGo(program: string): Promise<Results[]> {
  const cwd = join(ROOT, program);
  const vet = await timed(`go vet ${program}`, () => run("go", ["vet", ...GO_FLAGS, "./..."], 15 * MINUTE_MS, { cwd }));
  const test = await timed(`go test ${program}`, async () => {
    const events: GoTestEvent[] = [];
    const onLine = (line: string) =>
      void (line.startsWith("{") ? events.push(JSON.parse(line) as GoTestEvent) : console.log(line));
    // vet has run just now
    const code = await run(
      "go",
      ["test", ...GO_FLAGS, "-ldflags=-s -w", "-vet=off", "-json", "./..."],
      15 * MINUTE_MS,
      { cwd },
      onLine,
    );
    const results = goTestResults(events);
    if (code !== 0) console.log(outputOf(events));
    if (code === 0 || results.failures.length > 0) return results;
    return { ...results, failures: [`go test in ${program} ended with ${code}`] };
  });
  return vet === 0 ? [test] : [failure(`go vet in ${program} ended with ${vet}: see its output above`), test];
}

function outputOf(events: readonly (GoTestEvent & { readonly Output?: string })[]): string {
  return events.map(({ Output = "" }) => Output).join("");
}

/** Runs a command to its end; its output is shown, or its stdout given to `onLine`. Resolves with the exit code or the signal. */
async function run(
  command: string,
  args: readonly string[],
  timeoutMs: number,
  options: SpawnOptions = {},
  onLine?: (line: string) => void,
): Promise<number | string> {
  const env = { ...process.env, PATH: `${BIN}${delimiter}${process.env.PATH ?? ""}`, NODE_COMPILE_CACHE: COMPILE_CACHE };
  const stdio: SpawnOptions["stdio"] = ["ignore", onLine === undefined ? "inherit" : "pipe", "inherit"];
  const child = spawn(command, [...args], { cwd: ROOT, env, stdio, ...options });
  const timer = setTimeout(() => {
    console.error(`${command}: still running after ${timeoutMs / MINUTE_MS} minutes`);
    child.kill("SIGTERM");
    setTimeout(() => child.kill("SIGKILL"), 10_000).unref();
  }, timeoutMs);
  try {
    if (onLine !== undefined && child.stdout !== null) createInterface({ input: child.stdout }).on("line", onLine);
    const [code, signal] = (await once(child, "close")) as [number | null, string | null];
    return code ?? signal ?? "nothing";
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  } finally {
    clearTimeout(timer);
  }
}

async function timed<T>(name: string, work: () => Promise<T>): Promise<T> {
  const start = performance.now();
  const result = await work();
  durations.push(`${((performance.now() - start) / 1000).toFixed(1).padStart(7)} s  ${name}`);
  return result;
}

await main(process.argv.slice(2));
