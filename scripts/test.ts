// `npm test`: builds what the tests need, runs vitest and the tests of the Go programs, and ends with one line "N passed, N
// failed" (", N skipped" if any). The numbers come from the runners' reports; a runner that crashes, has no report or runs no
// test is a failure. Arguments go to vitest, which then runs alone. With CI=true a missing Go and every skipped test are
// failures.
import { join, relative } from "node:path";
import { GO_PROGRAMS, whyNoGo } from "../test/support/go-build.ts";
import { hasKubeAssets } from "../test/support/kube-assets/folder.ts";
import { withBundledPrograms } from "../test/support/programs.ts";
import { importsOf } from "./imports-of.ts";
import { ROOT } from "./run-command.ts";
import { buildGo, vetAndTestGo } from "./run-go-tests.ts";
import { runVitest } from "./run-vitest.ts";
import { type StoredResults, storedResults } from "./stored-results.ts";
import { failure, type Results, sum, summaryLine } from "./test-results.ts";

const IS_CI = process.env.CI === "true";
/** Full names of tests that CI may skip. */
const ALLOWED_SKIPS: ReadonlySet<string> = new Set();
/**
 * End-to-end tests that no change of the product affects: of what localkube is a copy of. Each is counted from its stored results while everything that it imports, and the folders named here, are as they were when it passed.
 */
const SELDOM_AFFECTED: Readonly<Record<string, readonly string[]>> = {
  "test/e2e/contract.test.ts": ["test/localkube", "test/kube"],
};

const durations: string[] = [];

async function main(vitestArgs: readonly string[]): Promise<void> {
  const parts = vitestArgs.length > 0 ? [(await runVitest(vitestArgs)).results] : await runAll();
  const total = sum(parts, { strict: IS_CI, allowedSkips: ALLOWED_SKIPS });
  console.log(`\n${durations.join("\n")}`);
  if (total.failures.length > 0)
    console.log(`\nFAILED\n${total.failures.map((line) => `  ${line.replaceAll(ROOT, "")}`).join("\n")}`);
  console.log(`\n${summaryLine(total)}`);
  process.exitCode = total.failures.length > 0 ? 1 : 0;
}

async function runAll(): Promise<Results[]> {
  const noGo = await whyNoGo();
  const builds = noGo === undefined ? buildAll() : Promise.resolve([]); // behind the unit tests, which need none of them
  const unit = await timed("unit tests", () => runVitest(["--project", "unit"]));
  const parts = [unit.results, ...(await builds)];
  parts.push(...(await runOnServers()));
  if (noGo === undefined)
    for (const program of GO_PROGRAMS) parts.push(await timed(`go vet and test ${program}`, () => vetAndTestGo(program)));
  else parts.push(withoutGo(noGo));
  return parts;
}

async function buildAll(): Promise<Results[]> {
  const parts: Results[] = [];
  for (const program of GO_PROGRAMS) parts.push(await timed(`build ${program}`, () => buildGo(program)));
  return parts;
}

/** Everything but the unit tests. */
async function runOnServers(): Promise<Results[]> {
  const files = hasKubeAssets() ? [] : Object.entries(SELDOM_AFFECTED);
  const parts: Results[] = [];
  const [exclude, keep]: [string[], [string, StoredResults][]] = [[], []];
  for (const [file, folders] of files) {
    const imports = importsOf(join(ROOT, file)).map((path) => relative(ROOT, path));
    const stored = storedResults(file, { sources: [...imports, ...folders, "package-lock.json"] });
    const before = stored.read();
    if (before === undefined) keep.push([file, stored]);
    else {
      parts.push(before);
      exclude.push("--exclude", file);
    }
  }
  const run = await withBundledPrograms(() =>
    timed("integration and end-to-end tests", () => runVitest(["--project", "!unit", ...exclude])),
  );
  for (const [file, stored] of keep) stored.keep(run.resultsOf(file) ?? failure(`${file} did not run`));
  return [...parts, run.results];
}

function withoutGo(why: string): Results {
  if (IS_CI) return failure(`the tests of the Go programs: ${why}`);
  console.log(`SKIPPED (${why}): the tests of ${GO_PROGRAMS.join(" and ")}`);
  return { passed: 0, failures: [], skipped: GO_PROGRAMS.map((program) => `go test ${program}`) };
}

async function timed<T>(name: string, work: () => Promise<T>): Promise<T> {
  const start = performance.now();
  const result = await work();
  durations.push(`${((performance.now() - start) / 1000).toFixed(1).padStart(7)} s  ${name}`);
  return result;
}

await main(process.argv.slice(2));
