// The demo's five steps. Each announces its action, acts, and waits for the result; it fails without the result. Called by main.ts.
import { MeshError } from "../../src/base/errors.ts";
import { CONFIG_MAPS } from "../../src/kube/client/resources.ts";
import { isStatus } from "../../src/kube/status.ts";
import { lockNameFor } from "../../src/route/lock.ts";
import { subsetDisplayName } from "../../src/route/subset-name.ts";
import { DEFAULT_SUBSET } from "../../src/route/table.ts";
import { APP_FILE } from "./app.ts";
import { FOOS } from "./manifests.ts";
import type { DemoPod } from "./pods.ts";
import type { Screen } from "./screen.ts";
import { tallyWrites } from "./tally.ts";
import { noteLines, stepLines, summaryLines, type Tally } from "./view.ts";
import { type Watcher, wrongApp, wrongReconciler } from "./watcher.ts";
import { FOO_NAME, type World } from "./world.ts";

const STEPS = 5;
const CANARY = "v2";
const LABEL = { "ns-type": "canary-1" };
const LABEL_TEXT = "ns-type=canary-1";
/** The namespaces of namespaces.yaml that get a Foo, with their owners in order of time. */
const OWNERS: ReadonlyMap<string, readonly string[]> = new Map([
  ["team-a", [DEFAULT_SUBSET]],
  ["team-b", [DEFAULT_SUBSET, CANARY]],
  ["team-c", [CANARY]],
  ["canary-eu", [CANARY]],
  ["canary-late", [CANARY]],
]);
const LATE = "canary-late";
const MOVED = "team-b";
const FOREIGN = "canary-eu";

export interface StoryContext {
  readonly world: World;
  readonly watcher: Watcher;
  readonly screen: Screen;
  /** The time to read the table between two steps. */
  readonly pauseMs: number;
}

export interface Teller {
  step(number: number, text: string): void;
  note(text: string): void;
}

export function createTeller(screen: Screen): Teller {
  return {
    step: (number, text) => screen.say(stepLines(number, STEPS, text, screen.paint)),
    note: (text) => screen.say(noteLines(text, screen.width)),
  };
}

/** All steps after the first, which is in main.ts. @throws MeshError `UNEXPECTED` for another result */
export async function tellStory(context: StoryContext): Promise<Tally> {
  for (const step of [divide, addNamespace, moveNamespace, refuseWrite]) {
    await step(context, createTeller(context.screen));
    await context.watcher.linger(context.pauseMs);
    context.screen.keepTable();
  }
  return sumUp(context);
}

async function divide({ world, watcher }: StoryContext, { step, note }: Teller): Promise<void> {
  step(2, `The VirtualApp gives subset ${CANARY} the namespaces labelled ${LABEL_TEXT} or named canary*`);
  note(`${APP_FILE}; everything else stays with the default subset. Each namespace gets a Foo to reconcile.`);
  const namespaces = [...OWNERS.keys()].filter((name) => name !== LATE);
  for (const namespace of namespaces) await world.createFoo(namespace, `hello ${namespace}`);
  const { locks } = await watcher.until((facts) => {
    const wrong = namespaces.map((name) => wrongReconciler(facts, name, podsOf(world, firstOwner(name))));
    return wrong.find((problem) => problem !== undefined) ?? wrongApp(facts);
  });
  for (const subset of [DEFAULT_SUBSET, CANARY]) {
    const name = lockNameFor(world.app.lockName, subset);
    const leader = locks.find(({ lock }) => lock === name)?.leader ?? "";
    check(
      podsOf(world, subset).includes(leader),
      `the lock ${name} should be held by a pod of ${subsetDisplayName(subset)}, not by "${leader}"`,
    );
  }
  note("Two leaders at once: each subset has its own lock, and the operators know only one lock.");
}

async function addNamespace({ world, watcher }: StoryContext, { step, note }: Teller): Promise<void> {
  step(3, `Namespace ${LATE} is new: its name matches ^canary, so ${CANARY} owns it from the beginning`);
  await world.createNamespace(LATE);
  await world.createFoo(LATE, `hello ${LATE}`);
  await watcher.until((facts) => wrongReconciler(facts, LATE, podsOf(world, CANARY)));
  const writers = await writersIn(world, LATE);
  check(writers.join() === CANARY, `only ${CANARY} should have written in ${LATE}, not ${writers.join(" and ")}`);
  note(`By the audit log, these subsets have written in it: ${writers.join(", ")}.`);
}

async function moveNamespace({ world, watcher }: StoryContext, { step, note }: Teller): Promise<void> {
  step(4, `Namespace ${MOVED} now has the label ${LABEL_TEXT}: it moves from default to ${CANARY}`);
  const before = (await world.foo(MOVED)).status?.count ?? 0;
  const startedAt = performance.now();
  await world.labelNamespace(MOVED, LABEL);
  await watcher.until((facts) => wrongReconciler(facts, MOVED, podsOf(world, CANARY), before + 1) ?? wrongApp(facts));
  note(`Fenced at default, acknowledged by both of its pods, granted to ${CANARY}, reconciled there: ${since(startedAt)}.`);
  note("Its Foo gets a new message: only the new owner works on it.");
  const { metadata } = await world.sayFoo(MOVED, `hello again ${MOVED}`);
  await watcher.until((facts) => wrongReconciler(facts, MOVED, podsOf(world, CANARY), before + 2));
  const { status } = await world.foo(MOVED);
  check(status?.observedGeneration === metadata.generation, `the Foo of ${MOVED} should be reconciled at its new generation`);
}

async function refuseWrite({ world }: StoryContext, { step, note }: Teller): Promise<void> {
  const pod = podOf(world, DEFAULT_SUBSET);
  step(5, `Pod ${pod.name} of the default subset writes to a ConfigMap in ${FOREIGN}, through its proxy`);
  note(await refusalOf(world, pod));
  const shown = (await world.clientOf(pod).list(FOOS)).items.map(({ metadata }) => metadata.namespace ?? "");
  const all = (await world.client.list(FOOS)).items.length;
  check(shown.join() === "team-a", `${pod.name} should see only the Foo of team-a, not of ${shown.join(", ")}`);
  note(`When the pod lists all Foos it sees ${shown.length} of ${all}: that of ${shown.join(", ")}.`);
}

async function refusalOf(world: World, pod: DemoPod): Promise<string> {
  const ref = { namespace: FOREIGN, name: `${FOO_NAME}-data` };
  try {
    await world.clientOf(pod).patch(CONFIG_MAPS, ref, { type: "merge", body: { data: { message: "own" } } });
  } catch (error) {
    if (!isStatus(error, "Forbidden")) throw error;
    const { data } = await world.client.get(CONFIG_MAPS, ref);
    check(data?.message !== "own", `the refused write should not be in ${FOREIGN}`);
    return `${error.status.code} ${error.status.reason}: ${error.status.message}`;
  }
  throw new MeshError("UNEXPECTED", `the write of ${pod.name} in ${FOREIGN} should have been refused`);
}

async function sumUp({ world, screen }: StoryContext): Promise<Tally> {
  const tally = await count(world);
  screen.say(summaryLines(tally, screen.paint, screen.width));
  const unwritten = [...OWNERS.keys()].filter(
    (name) => !tally.bySubset.some(({ namespaces }) => namespaces.some((row) => row.name === name)),
  );
  check(unwritten.length === 0, `the audit log should hold writes in ${unwritten.join(", ")}`);
  check(tally.outside.length === 0, "no subset should have written outside of its namespaces");
  return tally;
}

async function count({ audit, app, pods }: World): Promise<Tally> {
  return tallyWrites(await audit(), {
    subsetOfPod: new Map(pods.map(({ name, subset }) => [name, subset])),
    ownersOf: OWNERS,
    lock: { namespace: app.namespace, name: app.lockName },
  });
}

async function writersIn(world: World, namespace: string): Promise<string[]> {
  const { bySubset } = await count(world);
  return bySubset
    .filter(({ namespaces }) => namespaces.some(({ name }) => name === namespace))
    .map(({ subset }) => subsetDisplayName(subset));
}

function firstOwner(namespace: string): string {
  return OWNERS.get(namespace)?.[0] ?? DEFAULT_SUBSET;
}

function podsOf({ pods }: World, subset: string): string[] {
  return pods.filter((pod) => pod.subset === subset).map(({ name }) => name);
}

function podOf({ pods }: World, subset: string): DemoPod {
  const pod = pods.find((one) => one.subset === subset);
  if (pod === undefined) throw new MeshError("UNEXPECTED", `${subsetDisplayName(subset)} should have a pod`);
  return pod;
}

function check(isAsTold: boolean, otherwise: string): void {
  if (!isAsTold) throw new MeshError("UNEXPECTED", otherwise);
}

/** "1.4 s" */
export function since(startedAt: number): string {
  return `${((performance.now() - startedAt) / 1000).toFixed(1)} s`;
}
