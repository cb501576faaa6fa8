import { describe, expect, it } from "vitest";
import { failure, goTestResults, type Results, sum, summaryLine, vitestResults } from "./test-results.ts";

const file = (status: string, tests: Record<string, string>, message = "") => ({
  name: "/a.test.ts",
  status,
  message,
  assertionResults: Object.entries(tests).map(([fullName, each]) => ({ fullName, status: each })),
});
const NONE: Results = { passed: 0, failures: [], skipped: [] };

describe("vitest's report", () => {
  it("counts each test", () => {
    const report = {
      testResults: [file("failed", { a: "passed", b: "failed", c: "skipped", d: "todo" }), file("passed", { e: "passed" })],
    };
    expect(vitestResults(report)).toEqual({ passed: 2, failures: ["/a.test.ts: b"], skipped: ["c", "d"] });
  });

  it("reports why a test failed, without the stack", () => {
    const failureMessages = [`\x1b[31mError: expected 1\nto be 2${"!".repeat(1_000)}\x1b[39m\n    at f (a.ts:1:1)`];
    const test = { fullName: "b", status: "failed", failureMessages };
    const { failures } = vitestResults({ testResults: [{ ...file("failed", {}), assertionResults: [test] }] });
    expect(failures).toEqual([expect.stringMatching(/^\/a\.test\.ts: b: Error: expected 1\n {4}to be 2!{500,600}$/)]);
  });

  it("has one failure for a file that did not load and for a file with a failed hook", () => {
    const report = { testResults: [file("failed", {}, "Cannot find module\n  at x"), file("failed", { a: "skipped" }, "hook")] };
    expect(vitestResults(report)).toEqual({
      passed: 0,
      failures: ["/a.test.ts: Cannot find module", "/a.test.ts: hook"],
      skipped: ["a"],
    });
  });
});

describe("go test's report", () => {
  it("counts each test of each package", () => {
    const Package = "example.org/a";
    const events = [
      { Action: "start", Package },
      { Action: "run", Package, Test: "TestA" },
      { Action: "output", Package, Test: "TestA" },
      { Action: "pass", Package, Test: "TestA" },
      { Action: "fail", Package, Test: "TestB" },
      { Action: "skip", Package, Test: "TestC" },
      { Action: "fail", Package },
      { Action: "skip", Package: "example.org/without-tests" },
    ];
    expect(goTestResults(events)).toEqual({ passed: 1, failures: ["example.org/a TestB"], skipped: ["example.org/a TestC"] });
  });

  it("has one failure for a package that crashed and one for a package that does not build", () => {
    const events = [
      { Action: "pass", Package: "a", Test: "TestA" },
      { Action: "fail", Package: "a" },
      { Action: "build-output", ImportPath: "b [b.test]" },
      { Action: "build-fail", ImportPath: "b [b.test]" },
      { Action: "fail", Package: "b", FailedBuild: "b [b.test]" },
    ];
    expect(goTestResults(events)).toEqual({ passed: 1, failures: ["a: fail", "b [b.test]: build-fail"], skipped: [] });
  });
});

describe("the sum", () => {
  it("adds up all results", () => {
    const total = sum([{ passed: 2, failures: ["x"], skipped: ["y"] }, { ...NONE, passed: 1 }, failure("z")], { strict: false });
    expect(total).toEqual({ passed: 3, failures: ["x", "z"], skipped: ["y"] });
    expect(summaryLine(total)).toBe("3 passed, 2 failed, 1 skipped");
  });

  it("is a failure if no test ran, also if all tests were skipped", () => {
    expect(summaryLine(sum([], { strict: false }))).toBe("0 passed, 1 failed");
    expect(summaryLine(sum([{ ...NONE, skipped: ["a"] }], { strict: false }))).toBe("0 passed, 1 failed, 1 skipped");
  });

  it("counts skipped tests as failures if it is strict, except the allowed ones", () => {
    const total = sum([{ passed: 1, failures: [], skipped: ["a", "b"] }], { strict: true, allowedSkips: new Set(["b"]) });
    expect(total).toEqual({ passed: 1, failures: ["skipped, which CI does not allow: a"], skipped: ["b"] });
    expect(summaryLine(sum([{ ...NONE, passed: 7 }], { strict: true }))).toBe("7 passed, 0 failed");
  });
});
