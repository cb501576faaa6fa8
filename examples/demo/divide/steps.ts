// The steps of the act after the first, and the judgement of the audit log.
import { MeshError } from "../../../src/base/errors.ts";
import { CONFIG_MAPS, NAMESPACES } from "../../../src/kube/client/resources.ts";
import { isStatus } from "../../../src/kube/status.ts";
import { lockNameFor } from "../../../src/mesh/ownership/lock.ts";
import { DEFAULT_SUBSET } from "../../../src/mesh/ownership/table.ts";
import { subsetDisplayName } from "../../../src/mesh/ownership/words.ts";
import { check, type Stage } from "../act.ts";
import { FOOS } from "../manifests.ts";
import type { DemoPod } from "../pods.ts";
import { since } from "../teller.ts";
import { FOO_NAME, type World } from "../world.ts";
import { APP_FILE } from "./app.ts";
import { wrongApp, wrongReconciler } from "./expectations.ts";
import { tallyWrites } from "./tally.ts";
import { type Facts, summaryLines, type Tally } from "./view.ts";

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
/** A moment is 6 s at most (docs/concepts/handover.md). */
const [SHOWN_TRIES, SHOWN_PAUSE_MS] = [24, 300];
const LATE = "canary-late";
const MOVED = "team-b";
const FOREIGN = "canary-eu";

export async function divide({ world, watcher, teller: { step, note } }: Stage<Facts>): Promise<void> {
  step(`The VirtualApp gives subset ${CANARY} the namespaces labelled ${LABEL_TEXT} or named canary*`);
  note(`${APP_FILE}; everything else stays with the default subset. Each namespace gets a Foo to reconcile.`);
  const namespaces = [...OWNERS.keys()].filter((name) => name !== LATE);
  for (const namespace of namespaces) await world.createFoo(namespace, `hello ${namespace}`);
  const { locks } = await watcher.until((facts) => {
    const wrong = namespaces.map((name) => wrongReconciler(facts, name, podsOf(world, firstOwner(name))));
    return wrong.find((problem) => problem !== undefined) ?? wrongApp(facts);
  });
  for (const subset of [DEFAULT_SUBSET, CANARY]) {
    const name = lockNameFor(world.setting.lockName, subset);
    const leader = locks.find(({ lock }) => lock === name)?.leader ?? "";
    check(
      podsOf(world, subset).includes(leader),
      `the lock ${name} should be held by a pod of ${subsetDisplayName(subset)}, not by "${leader}"`,
    );
  }
  note("Two leaders at once: each subset has its own lock, and the operators know only one lock.");
}

export async function addNamespace({ world, watcher, teller: { step, note } }: Stage<Facts>): Promise<void> {
  step(`Namespace ${LATE} is new: its name matches ^canary, so ${CANARY} owns it from the beginning`);
  await world.client.create(NAMESPACES, { metadata: { name: LATE } });
  await world.createFoo(LATE, `hello ${LATE}`);
  await watcher.until((facts) => wrongReconciler(facts, LATE, podsOf(world, CANARY)));
  const writers = await writersIn(world, LATE);
  check(writers.join() === CANARY, `only ${CANARY} should have written in ${LATE}, not ${writers.join(" and ")}`);
  note(`By the audit log, these subsets have written in it: ${writers.join(", ")}.`);
}

export async function moveNamespace({ world, watcher, teller: { step, note } }: Stage<Facts>): Promise<void> {
  step(`Namespace ${MOVED} now has the label ${LABEL_TEXT}: it moves from default to ${CANARY}`);
  const before = (await world.foo(MOVED)).status?.count ?? 0;
  const startedAt = performance.now();
  await world.client.patch(NAMESPACES, { name: MOVED }, { type: "merge", body: { metadata: { labels: LABEL } } });
  await watcher.until((facts) => wrongReconciler(facts, MOVED, podsOf(world, CANARY), before + 1) ?? wrongApp(facts));
  note(`Fenced at default, acknowledged by both of its pods, granted to ${CANARY}, reconciled there: ${since(startedAt)}.`);
  note("Its Foo gets a new message: only the new owner works on it.");
  const { metadata } = await world.sayFoo(MOVED, `hello again ${MOVED}`);
  await watcher.until((facts) => wrongReconciler(facts, MOVED, podsOf(world, CANARY), before + 2));
  const { status } = await world.foo(MOVED);
  check(status?.observedGeneration === metadata.generation, `the Foo of ${MOVED} should be reconciled at its new generation`);
}

export async function refuseWrite({ world, watcher, teller: { step, note } }: Stage<Facts>): Promise<void> {
  const pod = podOf(world, DEFAULT_SUBSET);
  step(`Pod ${pod.name} of the default subset writes to a ConfigMap in ${FOREIGN}, through its proxy`);
  note(await refusalOf(world, pod));
  const list = async () => (await world.clientOf(pod).list(FOOS)).items.map(({ metadata }) => metadata.namespace ?? "");
  let shown = await list();
  // It has just written to the namespace that it lost, so it is shown that for a moment more.
  for (let tries = 0; tries < SHOWN_TRIES && shown.length > 1; tries++) {
    await watcher.linger(SHOWN_PAUSE_MS);
    shown = await list();
  }
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

export async function sumUp({ world, screen }: Stage<Facts>): Promise<void> {
  const tally = await count(world);
  screen.say(summaryLines(tally, screen.paint, screen.width));
  const unwritten = [...OWNERS.keys()].filter(
    (name) => !tally.bySubset.some(({ namespaces }) => namespaces.some((row) => row.name === name)),
  );
  check(unwritten.length === 0, `the audit log should hold writes in ${unwritten.join(", ")}`);
  check(tally.outside.length === 0, "no subset should have written outside of its namespaces");
}

async function count({ audit, operator }: World): Promise<Tally> {
  return tallyWrites(await audit(), { ...operator, ownersOf: OWNERS });
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
