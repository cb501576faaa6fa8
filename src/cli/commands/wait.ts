// `ctrlmesh wait`: waits until an app is ready, or until everything has moved as its last edit asks.
import { parseDuration, sleep } from "../../base/clock.ts";
import { appLines } from "../apps/app-lines.ts";
import { conditionOf, type FoundApp, findApp, isTrueNow } from "../apps/apps.ts";
import { type Call, type Command, usageError } from "../frame/command.ts";
import { EXIT } from "../frame/exit.ts";

/** What can be waited for, with the condition that says it. */
const CONDITIONS: Readonly<Record<string, string>> = { ready: "Ready", moved: "Converged" };

const POLL_MS = 1_000;

export const WAIT: Command = {
  name: "wait",
  args: "APP",
  summary: "waits until an app is ready, or until its namespaces have moved",
  flags: {
    for: { type: "string", value: "ready|moved", help: "what to wait for; default moved" },
    timeout: { type: "string", value: "DURATION", help: "default 5m" },
  },
  async run({ args: [name], flags, output, clock, cluster }: Call) {
    const goal = flags.text("for") ?? "moved";
    const type = CONDITIONS[goal];
    if (type === undefined) throw usageError(`--for: "${goal}" is none of: ${Object.keys(CONDITIONS).join(", ")}`);
    const timeout = flags.text("timeout") ?? "5m";
    const timeoutMs = parseDuration(timeout);
    if (timeoutMs === undefined) throw usageError(`--timeout: "${timeout}" is no duration such as "30s" or "5m"`);
    const connected = await cluster();
    const namespace = flags.text("namespace") ?? connected.namespace;
    const endMs = clock.monotonicMs() + timeoutMs;
    for (let said = ""; ; ) {
      const app = await findApp(connected, name, namespace);
      const isThrough = isTrueNow(app, type);
      const state = stateOf(app, type, isThrough);
      if (isThrough || clock.monotonicMs() >= endMs) {
        const lines = isThrough ? [state] : [`${state} after ${timeout}`, ...appLines(app, clock.now())];
        output.data("Wait", { namespace, name, for: goal, reached: isThrough, reason: conditionOf(app, type)?.reason }, lines);
        return isThrough ? EXIT.ok : EXIT.timedOut;
      }
      if (state !== said) output.hint(state);
      said = state;
      await sleep(clock, Math.min(POLL_MS, Math.max(0, endMs - clock.monotonicMs())));
    }
  },
};

function stateOf(app: FoundApp, type: string, isThrough: boolean): string {
  const condition = conditionOf(app, type);
  const { name, generation } = app.object.metadata;
  if (condition === undefined) return `${name}: no condition ${type} yet`;
  if (condition.observedGeneration !== generation) return `${name}: ${type} is not known yet for the last edit`;
  return isThrough
    ? `${name}: ${type} (${condition.reason})`
    : `${name}: not ${type} (${condition.reason}): ${condition.message}`;
}
