import { describe, expect, it } from "vitest";
import { movableBases } from "./pins.ts";
import { holdsPower, type Job, movableActions, trustedJobs, type Workflow, workflowProblems } from "./workflow-rules.ts";

const COMMIT = "0123456789abcdef0123456789abcdef01234567";
const READS = { contents: "read" };
const GATE: Job = {
  permissions: READS,
  steps: [{ run: "npm ci --ignore-scripts" }, { run: "npm run release -- --require-pins" }],
};
const PUSH: Job = {
  permissions: { "id-token": "write" },
  environment: "release",
  needs: "gate",
  steps: [{ run: "cosign sign" }],
};
const GOOD: Workflow = { on: { push: {} }, jobs: { gate: GATE, push: PUSH } };
/** As GitHub writes it; a template of JavaScript looks alike. */
const expression = (text: string) => ["$", `{{ ${text} }}`].join("");
const withJob = (job: Job): Workflow => ({ ...GOOD, jobs: { ...GOOD.jobs, push: job } });

describe("a job holds power", () => {
  it.each<[string, Job, boolean]>([
    ["not if it only reads", { permissions: READS }, false],
    ["not if it has no rights at all", { permissions: {} }, false],
    ["if it may write", { permissions: { contents: "write" } }, true],
    ["if it may write everything", { permissions: "write-all" }, true],
    ["if it names no permissions, since the repository's default may be to write", {}, true],
    ["if it has a secret", { permissions: READS, env: { PASSWORD: expression("secrets.PASSWORD") } }, true],
    ["if it hands its secrets to another workflow", { permissions: READS, uses: "./x.yml", secrets: "inherit" }, true],
  ])("%s", (_, job, expected) => {
    expect(holdsPower(GOOD, job)).toBe(expected);
  });

  it("if the whole workflow has a secret", () => {
    expect(holdsPower({ ...GOOD, env: { TOKEN: expression("secrets.TOKEN") } }, { permissions: READS })).toBe(true);
  });
});

describe("the rules", () => {
  it("find nothing in jobs that keep them", () => {
    expect(workflowProblems(GOOD)).toEqual([]);
  });

  it.each<[string, Workflow, string]>([
    ["a job without permissions", withJob({ ...PUSH, permissions: undefined as never }), "names no permissions"],
    ["a checkout that leaves its token", withJob({ ...PUSH, steps: [{ uses: "actions/checkout@v6" }] }), "persist-credentials"],
    [
      "a push outside of an environment",
      withJob({ ...PUSH, environment: undefined as never }),
      "outside of a protected environment",
    ],
    ["a push that needs no check of the pins", withJob({ ...PUSH, needs: [] }), "needs no job that runs with --require-pins"],
    ["an install script beside a secret", withJob({ ...PUSH, steps: [{ run: "npm ci" }] }), 'runs "npm ci" without'],
    [
      "an install script in what is published",
      { ...GOOD, jobs: { gate: { ...GATE, steps: [{ run: "npm install x" }, ...(GATE.steps ?? [])] }, push: PUSH } },
      'job gate: runs "npm install x" without',
    ],
    [
      "an expression in a command",
      withJob({ ...PUSH, steps: [{ run: `echo ${expression("github.head_ref")}` }] }),
      "an expression in a command",
    ],
    ["a stranger's branch with secrets", { ...GOOD, on: ["pull_request_target"] }, "runs a stranger's branch"],
  ])("refuse %s", (_, workflow, problem) => {
    expect(workflowProblems(workflow)).toEqual([expect.stringContaining(problem)]);
  });

  it("allow install scripts in a job that holds nothing and whose result nobody publishes", () => {
    const tests: Job = { permissions: READS, steps: [{ run: "npm ci && npm test" }] };
    expect(workflowProblems({ on: "push", jobs: { tests } })).toEqual([]);
  });
});

describe("movable names", () => {
  it("of actions are those without a commit, in the jobs that hold power and in those that they need", () => {
    const jobs = {
      tests: { permissions: READS, steps: [{ uses: "a/tests@v1" }] },
      gate: { ...GATE, uses: "./.github/workflows/ci.yml", steps: [{ uses: "a/gate@v1" }, { uses: `a/pinned@${COMMIT}` }] },
      push: { ...PUSH, steps: [{ uses: "a/push@v1" }, { uses: "a/gate@v1" }, { uses: "a/short@0123456" }] },
    };
    expect([...trustedJobs({ on: "push", jobs })].sort()).toEqual(["gate", "push"]);
    expect(movableActions({ on: "push", jobs })).toEqual(["a/gate@v1", "a/push@v1", "a/short@0123456"]);
  });

  it("of base images are those without a digest, also behind an ARG", () => {
    const of = (base: string) => `ARG BASE=${base}\nFROM \${BASE} AS build\nFROM build\nFROM \${BASE}\nFROM scratch\n`;
    expect(movableBases(of("node:24"))).toEqual(["node:24"]);
    expect(movableBases(of(`node:24@sha256:${"0".repeat(64)}`))).toEqual([]);
    expect(movableBases(`FROM \${UNSET}\nFROM scratch\n`)).toEqual([""]);
  });
});
