// Builds, vets and tests the Go programs of the tests. Vet and test run only for sources that have not passed here before.
import { join } from "node:path";
import { GO_FLAGS, type GoProgram, goProgram, goVersion } from "../test/support/go-build.ts";
import { MINUTE_MS, ROOT, runCommand } from "./run-command.ts";
import { storedResults } from "./stored-results.ts";
import { failure, type GoTestEvent, goTestResults, type Results, sum } from "./test-results.ts";

const TIMEOUT_MS = 15 * MINUTE_MS;

/** No results unless the build fails. */
export async function buildGo(program: GoProgram): Promise<Results> {
  try {
    await goProgram(program);
    return { passed: 0, failures: [], skipped: [] };
  } catch (error) {
    return failure(`building ${program}: ${error instanceof Error ? error.message : error}`);
  }
}

export async function vetAndTestGo(program: GoProgram): Promise<Results> {
  const stored = storedResults(`go vet and test of ${program}`, { sources: [program], also: (await goVersion()) ?? "" });
  const before = stored.read();
  if (before !== undefined) return before;
  const cwd = join(ROOT, program);
  const vet = await runCommand("go", ["vet", ...GO_FLAGS, "./..."], { timeoutMs: TIMEOUT_MS, cwd });
  const tested = await testGo(program, cwd);
  if (vet !== 0) return sum([failure(`go vet in ${program} ended with ${vet}: see its output above`), tested], { strict: false });
  stored.keep(tested);
  return tested;
}

async function testGo(program: GoProgram, cwd: string): Promise<Results> {
  const events: (GoTestEvent & { readonly Output?: string })[] = [];
  const onLine = (line: string) => void (line.startsWith("{") ? events.push(JSON.parse(line)) : console.log(line));
  // vet has run just now
  const args = ["test", ...GO_FLAGS, "-ldflags=-s -w", "-vet=off", "-json", "./..."];
  const code = await runCommand("go", args, { timeoutMs: TIMEOUT_MS, cwd, onLine });
  const results = goTestResults(events);
  if (code !== 0) console.log(events.map(({ Output = "" }) => Output).join(""));
  if (code === 0 || results.failures.length > 0) return results;
  return { ...results, failures: [`go test in ${program} ended with ${code}`] };
}
