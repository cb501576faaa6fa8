// What the test runners say in their reports, added up. Pure. Invariant: a file or package that fails without any failed
// test in it (it did not load, it crashed, its hook failed) counts as one failure, so that no failure can be lost.
import { stripVTControlCharacters } from "node:util";

const MAX_WHY_CHARS = 600;

export interface Results {
  readonly passed: number;
  /** One line for each failure: where, and what. */
  readonly failures: readonly string[];
  /** Full names. */
  readonly skipped: readonly string[];
}

/** The JSON report of vitest (which has Jest's form), as far as it is read here. */
export interface VitestReport {
  readonly testResults: readonly {
    readonly name: string;
    readonly status: string;
    readonly message?: string;
    readonly assertionResults: readonly {
      readonly fullName: string;
      readonly status: string;
      readonly failureMessages?: readonly string[] | null;
    }[];
  }[];
}

/** One line of `go test -json` (cmd/test2json TestEvent), as far as it is read here. */
export interface GoTestEvent {
  readonly Action: string;
  readonly Package?: string;
  readonly ImportPath?: string;
  readonly Test?: string;
}

export function vitestResults(report: VitestReport): Results {
  const failures: string[] = [];
  const skipped: string[] = [];
  let passed = 0;
  for (const { name, status, message = "", assertionResults } of report.testResults) {
    const before = failures.length;
    for (const test of assertionResults) {
      if (test.status === "passed") passed++;
      else if (test.status === "failed") failures.push(`${name}: ${test.fullName}${why(test.failureMessages)}`);
      else skipped.push(test.fullName);
    }
    if (status === "failed" && failures.length === before) failures.push(`${name}: ${firstLine(message) || "failed"}`);
  }
  return { passed, failures, skipped };
}

export function goTestResults(events: Iterable<GoTestEvent>): Results {
  const failures: string[] = [];
  const skipped: string[] = [];
  const failedIn = new Set<string>();
  let passed = 0;
  for (const { Action, Package = "", ImportPath = Package, Test } of events) {
    if (Test === undefined) {
      if (Action === "build-fail" || (Action === "fail" && !failedIn.has(Package))) failures.push(`${ImportPath}: ${Action}`);
      if (Action === "build-fail") failedIn.add(packageOf(ImportPath));
    } else if (Action === "pass") passed++;
    else if (Action === "skip") skipped.push(`${Package} ${Test}`);
    else if (Action === "fail") {
      failures.push(`${Package} ${Test}`);
      failedIn.add(Package);
    }
  }
  return { passed, failures, skipped };
}

/** A run that gave no results but failed. */
export function failure(why: string): Results {
  return { passed: 0, failures: [why], skipped: [] };
}

export interface SumOptions {
  /** A skipped test is a failure, unless its full name is among `allowedSkips`. */
  readonly strict: boolean;
  readonly allowedSkips?: ReadonlySet<string>;
}

/** All results together; no test at all is a failure. */
export function sum(parts: readonly Results[], { strict, allowedSkips = new Set() }: SumOptions): Results {
  const passed = parts.reduce((total, part) => total + part.passed, 0);
  const failures = parts.flatMap((part) => part.failures);
  const skipped = parts.flatMap((part) => part.skipped);
  if (passed + failures.length === 0) failures.push("no test ran");
  if (!strict) return { passed, failures, skipped };
  const forbidden = skipped.filter((name) => !allowedSkips.has(name));
  return {
    passed,
    failures: [...failures, ...forbidden.map((name) => `skipped, which CI does not allow: ${name}`)],
    skipped: skipped.filter((name) => allowedSkips.has(name)),
  };
}

/** "N passed, N failed", with ", N skipped" if there are any. */
export function summaryLine({ passed, failures, skipped }: Results): string {
  return `${passed} passed, ${failures.length} failed${skipped.length > 0 ? `, ${skipped.length} skipped` : ""}`;
}

// "example.org/a [example.org/a.test]" is how a test variant of a package is called.
function packageOf(importPath: string): string {
  return importPath.split(" ")[0] ?? importPath;
}

/** What the first failed expectation said, without its stack: who has only the end of a log is to know why, too. */
function why(messages: readonly string[] | null = []): string {
  const [said = ""] = messages?.[0]?.split(/\n\s+at /) ?? [];
  return said === "" ? "" : `: ${stripVTControlCharacters(said).slice(0, MAX_WHY_CHARS).replaceAll("\n", "\n    ")}`;
}

function firstLine(text: string): string {
  return text.split("\n")[0]?.trim() ?? "";
}
