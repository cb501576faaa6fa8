// Adds up the reports of the test runners. A file or package that fails without a failed test (it did not load, it crashed, its
// hook failed) counts as one failure, so that no failure is lost. Pure; called by test.ts.
import { stripVTControlCharacters } from "node:util";

const MAX_WHY_CHARS = 600;

export interface Results {
  readonly passed: number;
  /** One line for each failure: its place and its reason. */
  readonly failures: readonly string[];
  /** Full names. */
  readonly skipped: readonly string[];
}

/** The JSON report of vitest (in Jest's form), as far as it is read here. */
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

/** A run that failed without results. */
export function failure(why: string): Results {
  return { passed: 0, failures: [why], skipped: [] };
}

export interface SumOptions {
  /** True to count a skipped test as a failure, unless `allowedSkips` has its full name. */
  readonly strict: boolean;
  readonly allowedSkips?: ReadonlySet<string>;
}

/** All results together. A run without any test is a failure. */
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

// go test calls a test variant of a package "example.org/a [example.org/a.test]".
function packageOf(importPath: string): string {
  return importPath.split(" ")[0] ?? importPath;
}

/** The first failed expectation without its stack, so that the end of a log also shows the reason. */
function why(messages: readonly string[] | null = []): string {
  const [said = ""] = messages?.[0]?.split(/\n\s+at /) ?? [];
  return said === "" ? "" : `: ${stripVTControlCharacters(said).slice(0, MAX_WHY_CHARS).replaceAll("\n", "\n    ")}`;
}

function firstLine(text: string): string {
  return text.split("\n")[0]?.trim() ?? "";
}
