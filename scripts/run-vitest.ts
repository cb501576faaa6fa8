// Runs vitest and reads its JSON report. Invariant: a run that crashes or gives no report is a failure.
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { MINUTE_MS, ROOT, runCommand } from "./run-command.ts";
import { failure, type Results, type VitestReport, vitestResults } from "./test-results.ts";

export interface VitestRun {
  readonly results: Results;
  /** The results of one file; undefined if the file did not run. */
  resultsOf(path: string): Results | undefined;
}

const TIMEOUT_MS = 40 * MINUTE_MS;

export async function runVitest(args: readonly string[], timeoutMs = TIMEOUT_MS): Promise<VitestRun> {
  const dir = await mkdtemp(join(tmpdir(), "ctrlmesh-report-"));
  const reportFile = join(dir, "vitest.json");
  const vitest = [join(ROOT, "node_modules/vitest/vitest.mjs"), "run", "--reporter=default", "--reporter=json"];
  try {
    const command = [...vitest, `--outputFile.json=${reportFile}`, ...args];
    const code = await runCommand(process.execPath, command, { timeoutMs });
    const text = await readFile(reportFile, "utf8").catch(() => undefined);
    if (text === undefined)
      return { results: failure(`vitest gave no report and ended with ${code}`), resultsOf: () => undefined };
    const report = JSON.parse(text) as VitestReport;
    return {
      results: withExitCode(vitestResults(report), code),
      resultsOf(path) {
        const testResults = report.testResults.filter(({ name }) => name === join(ROOT, path));
        return testResults.length === 0 ? undefined : vitestResults({ testResults });
      },
    };
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

// Errors outside of any test (an unhandled rejection) show in the exit code alone.
function withExitCode(results: Results, code: number | string): Results {
  if (code === 0 || results.failures.length > 0) return results;
  return { ...results, failures: [`vitest ended with ${code}, with no failed test: see its output above`] };
}
