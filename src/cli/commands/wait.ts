// `ctrlmesh wait`: waits until an app is ready, or until everything has moved as its last edit asks. Invariant: it ends in
// its time, whatever the API server does.
import { type Clock, parseDuration, sleep } from "../../base/clock.ts";
import { errorMessage, isMeshError } from "../../base/errors.ts";
import { appLines } from "../apps/app-lines.ts";
import { conditionOf, type FoundApp, findApp, isTrueNow } from "../apps/apps.ts";
import { type Call, type Command, type FlagValues, usageError } from "../frame/command.ts";
import { EXIT, type ExitCode } from "../frame/exit.ts";
import { accessFlags, clusterOptions, namespaceOf } from "../frame/flags.ts";
import { shellLine } from "../frame/output.ts";

/** What can be waited for, with the condition that says it. */
const CONDITIONS: Readonly<Record<string, string>> = { ready: "Ready", moved: "Converged" };
const POLL_MS = 1_000;

interface Goal {
  readonly name: string;
  readonly condition: string;
  readonly timeout: string;
  readonly timeoutMs: number;
}

/** What one look at the app has found. */
type Look = { readonly app: FoundApp } | { readonly trouble: string };

export const WAIT: Command = {
  name: "wait",
  args: "APP",
  maxArgs: 1,
  summary: "waits until an app is ready, or until its namespaces have moved",
  flags: {
    for: { type: "string", value: "ready|moved", help: "what to wait for; default moved" },
    timeout: { type: "string", value: "DURATION", help: "default 5m" },
  },
  async run(call: Call) {
    const { clock, output } = call;
    const goal = goalOf(call.flags);
    const endMs = clock.monotonicMs() + goal.timeoutMs;
    let last: Look = { trouble: "the API server has not answered yet" };
    let printed = "";
    while (clock.monotonicMs() <= endMs) {
      last = (await within(look(call), endMs, clock)) ?? last;
      if ("app" in last && isTrueNow(last.app, goal.condition)) return reached(call, goal, last.app);
      const line = lineOf(last, goal);
      if (line !== printed) output.hint(line);
      printed = line;
      if (clock.monotonicMs() >= endMs) break;
      await sleep(clock, Math.min(POLL_MS, endMs - clock.monotonicMs()));
    }
    return late(call, goal, last);
  },
};

function goalOf(flags: FlagValues): Goal {
  const name = flags.text("for") ?? "moved";
  const condition = Object.hasOwn(CONDITIONS, name) ? CONDITIONS[name] : undefined;
  if (condition === undefined) throw usageError(`--for: "${name}" is none of: ${Object.keys(CONDITIONS).join(", ")}`);
  const timeout = flags.text("timeout") ?? "5m";
  const timeoutMs = parseDuration(timeout);
  if (timeoutMs === undefined) throw usageError(`--timeout: "${timeout}" is no duration such as "30s" or "5m"`);
  return { name, condition, timeout, timeoutMs };
}

/** An API server that is away for a moment is waited for. @throws MeshError if there is no such app, or no right to see it */
async function look({ args: [name], flags, cluster }: Call): Promise<Look> {
  try {
    const connected = await cluster();
    return { app: await findApp(connected, name, namespaceOf(flags, connected.namespace)) };
  } catch (error) {
    if (isMeshError(error, "NO_ANSWER")) return { trouble: errorMessage(error) };
    throw error;
  }
}

function within<T>(promise: Promise<T>, endMs: number, clock: Clock): Promise<T | undefined> {
  return Promise.race([promise, sleep(clock, Math.max(0, endMs - clock.monotonicMs())).then(() => undefined)]);
}

function reached({ output }: Call, { name: goal, condition }: Goal, app: FoundApp): ExitCode {
  const { namespace, name } = app;
  const reason = conditionOf(app, condition)?.reason;
  output.data("Wait", { namespace, name, for: goal, reached: true, reason }, [`${name}: ${condition} (${reason})`]);
  return EXIT.ok;
}

function late({ args: [asked], flags, output, clock }: Call, goal: Goal, last: Look): ExitCode {
  const access = accessFlags(clusterOptions(flags));
  const status = "app" in last ? appLines(last.app, access, clock.now()) : [];
  const { namespace, name } = "app" in last ? last.app : { namespace: flags.text("namespace"), name: asked };
  const reason = "app" in last ? conditionOf(last.app, goal.condition)?.reason : undefined;
  const check = shellLine(["ctrlmesh", "check", ...access]);
  const help = "app" in last && !isJudged(last.app, goal) ? [`whether a manager leads is said by: ${check}`] : [];
  const lines = [`${lineOf(last, goal)} after ${goal.timeout}`, ...help, ...status];
  output.data("Wait", { namespace, name, for: goal.name, reached: false, reason }, lines);
  return EXIT.timedOut;
}

/** A manager that leads takes moments for it. */
function isJudged(app: FoundApp, { condition }: Goal): boolean {
  return conditionOf(app, condition)?.observedGeneration === app.object.metadata.generation;
}

function lineOf(last: Look, goal: Goal): string {
  if ("trouble" in last) return last.trouble;
  const { app } = last;
  const { condition: type } = goal;
  const condition = conditionOf(app, type);
  if (condition === undefined) return `${app.name}: no condition ${type} yet`;
  if (!isJudged(app, goal)) return `${app.name}: ${type} is not known yet for the last edit`;
  return `${app.name}: not ${type} (${condition.reason}): ${condition.message}`;
}
