// Plays one act: opens its cluster, tells its steps, judges the audit log, and with `keep` stays up. Invariant: all processes and files of the
// demo end with it. Called by main.ts.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { PageServer } from "../../src/cli/dashboard/server.ts";
import type { Act, Stage } from "./act.ts";
import { openDemoDashboard } from "./dashboard.ts";
import { createProcesses } from "./processes.ts";
import { createScreen, type Screen } from "./screen.ts";
import { noteLines } from "./table.ts";
import { createTeller, since } from "./teller.ts";
import { createWatcher } from "./watcher.ts";
import { openWorld, type World } from "./world.ts";

/** The time to read the table between two steps. */
const READING_MS = 3_000;

export interface Performance {
  /** Open the dashboard, and stay up after the summary. */
  readonly keep: boolean;
  readonly signal: AbortSignal;
}

/** @throws MeshError `UNEXPECTED` if a step has another result, or the signal's reason */
export async function perform<F>(act: Act<F>, { keep, signal }: Performance): Promise<void> {
  const startedAt = performance.now();
  const screen = createScreen({ out: process.stdout, env: process.env });
  const teller = createTeller(screen, 1 + act.steps.length);
  const dir = mkdtempSync(join(tmpdir(), "ctrlmesh-demo-"));
  const processes = createProcesses();
  let world: World | undefined;
  let dashboard: PageServer | undefined;
  try {
    teller.step(act.opening);
    teller.note(act.roles);
    const opened = await interruptible(openWorld({ setting: act.setting, processes, dir }), signal);
    world = opened;
    await interruptible(Promise.all(act.pods.map(opened.startPod)), signal);
    for (const line of act.introduce(opened.pods)) teller.note(line);
    teller.note(`${processes.count} processes, ready after ${since(startedAt)}`);
    if (keep) dashboard = await openDemoDashboard(opened);
    if (dashboard !== undefined) teller.note(`The same on a page, which shows each move: ${dashboard.url}`);
    const watcher = createWatcher({
      look: () => act.look(opened),
      show: (facts) => screen.show(act.draw(facts, screen.paint, screen.width)),
      assertAlive: processes.assertAlive,
      signal,
    });
    const tell = async () => {
      await tellSteps(act, { world: opened, watcher, screen, teller });
      const next = act.next === undefined ? [] : ["", ...noteLines(act.next, screen.width)];
      screen.say(["", ...noteLines(`Every step succeeded. ${since(startedAt)}.`, screen.width), ...(keep ? [] : next)]);
      if (!keep) return;
      screen.say(keepLines(act, opened, screen.width));
      if (dashboard !== undefined) screen.say(["", `dashboard: ${dashboard.url}`]);
      await watcher.linger(Number.POSITIVE_INFINITY);
    };
    await Promise.race([tell(), ...(act.play === undefined ? [] : [act.play(opened, signal)])]);
  } finally {
    // Last of all, when processes that were still starting are killed and write no more.
    process.once("exit", () => rmSync(dir, { recursive: true, force: true }));
    await dashboard?.close();
    await world?.close();
    await processes.stop();
  }
}

async function tellSteps<F>(act: Act<F>, stage: Stage<F>): Promise<void> {
  const { screen, watcher } = stage;
  for (const step of act.steps) {
    await step(stage);
    await watcher.linger(screen.isTerminal ? READING_MS : 0);
    screen.keepTable();
  }
  await act.sumUp(stage);
}

function keepLines<F>({ resource, move }: Act<F>, { apiServer, pods }: World, width: Screen["width"]): string[] {
  const [first] = pods;
  return [
    "",
    ...noteLines("Still up, until Ctrl-C. The whole cluster, and what one pod is shown of it through its proxy:", width),
    "",
    `kubectl --kubeconfig ${apiServer.kubeconfig} get ${resource} -A`,
    `kubectl --kubeconfig ${apiServer.kubeconfig} get foos -A`,
    `kubectl --kubeconfig ${first?.kubeconfig} get foos -A`,
    ...(move === undefined ? [] : ["", ...noteLines("To see a namespace move on the page:", width)]),
    ...(move === undefined ? [] : ["", `kubectl --kubeconfig ${apiServer.kubeconfig} ${move}`]),
  ];
}

// The start cannot be interrupted, but the demo need not wait for it: the processes end with this one.
function interruptible<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    work.then(resolve, reject);
    if (signal.aborted) reject(signal.reason);
    else signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}
