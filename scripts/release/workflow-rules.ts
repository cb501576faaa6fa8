// What the workflows must keep so that a moved tag, a package's install script or a pushed tag cannot use their rights. Pure.
// test/docs/workflows.test.ts holds all workflows to the rules, and `npm run release` asks for the pins.
//
// A job holds power if it has a secret, a token that can write, or an identity that signs. What such a job takes from the jobs that it
// needs, it publishes: these count as trusted, and the stricter rules hold for both.

export interface Step {
  readonly uses?: string;
  readonly run?: string;
  readonly with?: Readonly<Record<string, unknown>>;
}

export interface Job {
  readonly permissions?: string | Readonly<Record<string, string>>;
  readonly environment?: string;
  readonly needs?: string | readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Of a job that calls another workflow. */
  readonly secrets?: unknown;
  readonly uses?: string;
  readonly steps?: readonly Step[];
  readonly strategy?: {
    readonly matrix: { readonly include: readonly { readonly image: string; readonly dockerfile: string }[] };
  };
}

export interface Workflow {
  readonly on: string | readonly string[] | Readonly<Record<string, unknown>>;
  readonly env?: Readonly<Record<string, string>>;
  readonly jobs: Readonly<Record<string, Job>>;
}

/** The flag of `npm run release` that refuses a tree with actions or base images by names that can be moved. */
export const REQUIRE_PINS = "--require-pins";
/** Events that run a stranger's branch with the repository's secrets. */
const FOREIGN_EVENTS = ["pull_request_target", "workflow_run"];
const INSTALLS = /\bnpm (?:ci|clean-install|cit|i|install|it)\b[^\n;&|]*/g;
const COMMIT = /@[0-9a-f]{40}$/;

export function holdsPower({ env }: Workflow, job: Job): boolean {
  const { permissions, secrets } = job;
  if (permissions === undefined || secrets !== undefined) return true;
  const rights = typeof permissions === "string" ? [permissions] : Object.values(permissions);
  return rights.some((right) => right.includes("write")) || JSON.stringify([job, env]).includes("secrets.");
}

/** The names of the jobs that hold power, and of those that they need. */
export function trustedJobs(workflow: Workflow): Set<string> {
  const trusted = new Set<string>();
  const trust = (name: string): void => {
    if (trusted.has(name)) return;
    trusted.add(name);
    for (const needed of needsOf(workflow.jobs[name])) trust(needed);
  };
  for (const [name, job] of Object.entries(workflow.jobs)) if (holdsPower(workflow, job)) trust(name);
  return trusted;
}

/** The actions of trusted jobs that are not named by a commit, each once. */
export function movableActions(workflow: Workflow): string[] {
  const used = [...trustedJobs(workflow)].flatMap((name) => actionsOf(workflow.jobs[name]));
  return [...new Set(used.filter((action) => !COMMIT.test(action)))].sort();
}

/** Actions of other repositories. A path names a workflow of this one. */
export function actionsOf({ uses, steps = [] }: Job = {}): string[] {
  return [uses, ...steps.map((step) => step.uses)].filter((each) => each !== undefined).filter((each) => !each.startsWith("./"));
}

/** All problems, not the first. */
export function workflowProblems(workflow: Workflow): string[] {
  const trusted = trustedJobs(workflow);
  const problems = eventsOf(workflow)
    .filter((event) => FOREIGN_EVENTS.includes(event))
    .map((event) => `on ${event}: runs a stranger's branch with the repository's secrets`);
  for (const [name, job] of Object.entries(workflow.jobs)) {
    const found = [
      ...problemsOfAny(job),
      ...(trusted.has(name) ? problemsOfTrusted(job) : []),
      ...(holdsPower(workflow, job) ? problemsOfPower(workflow, job) : []),
    ];
    problems.push(...found.map((problem) => `job ${name}: ${problem}`));
  }
  return problems;
}

function problemsOfAny({ permissions, steps = [] }: Job): string[] {
  const problems = permissions === undefined ? ["names no permissions"] : [];
  for (const { uses = "", run = "", with: inputs } of steps) {
    if (uses.startsWith("actions/checkout@") && inputs?.["persist-credentials"] !== false)
      problems.push("checks out without persist-credentials: false, so every later step has the token");
    if (run.includes("${{")) problems.push("has an expression in a command: a branch's name could be a command; pass it by env");
  }
  return problems;
}

function problemsOfTrusted({ steps = [] }: Job): string[] {
  const installs = steps.flatMap(({ run = "" }) => run.match(INSTALLS) ?? []);
  return installs
    .filter((command) => !command.includes("--ignore-scripts"))
    .map((command) => `runs "${command.trim()}" without --ignore-scripts`);
}

function problemsOfPower(workflow: Workflow, job: Job): string[] {
  const problems = job.environment === undefined ? ["holds a secret or may write, outside of a protected environment"] : [];
  if (!isGated(workflow, job)) problems.push(`holds a secret or may write, and needs no job that runs with ${REQUIRE_PINS}`);
  return problems;
}

function isGated(workflow: Workflow, job: Job): boolean {
  return needsOf(job).some((name) => {
    const needed = workflow.jobs[name];
    if (needed === undefined) return false;
    return needed.steps?.some(({ run = "" }) => run.includes(REQUIRE_PINS)) === true || isGated(workflow, needed);
  });
}

function needsOf({ needs = [] }: Job = {}): readonly string[] {
  return typeof needs === "string" ? [needs] : needs;
}

function eventsOf({ on }: Workflow): readonly string[] {
  if (typeof on === "string") return [on];
  return Array.isArray(on) ? on : Object.keys(on);
}
