// The steps of the act, and the check at its end: two clusters, each with one writer, and one of them moves.
import { setTimeout as delay } from "node:timers/promises";
import { MESH_CLUSTERS } from "../../../src/api/resources.ts";
import { check, type Stage } from "../act.ts";
import type { DemoPod } from "../pods.ts";
import { noteLines, tableLines, verdictLines } from "../table.ts";
import { startCluster, type Target, writeByTunnel, writesTo } from "./other-clusters.ts";
import type { Facts } from "./view.ts";

const DRAIN_SECONDS = 1;
const EVERY_MS = 50;
const ENOUGH_WRITES = 10;

/** What the pods write to, and the answers that they got, by pod and target. */
export interface Others {
  readonly targets: Target[];
  readonly answers: Map<string, string[]>;
  isOver: boolean;
}

export function openClusters(): Others {
  return { targets: [], answers: new Map(), isOver: false };
}

export async function addClusters({ world, watcher, teller: { step, note } }: Stage<Facts>, others: Others): Promise<void> {
  step("Two more clusters, eu and us, and a MeshCluster for each: the operator works on them too");
  for (const cluster of await Promise.all(["eu", "us"].map((name) => startCluster(name, world)))) {
    const { name } = cluster;
    others.targets.push({ name, cluster, namespace: "default" });
    const metadata = { namespace: world.setting.namespace, name, labels: { region: name } };
    const spec = { servers: [cluster.apiServer.server], drainSeconds: DRAIN_SECONDS };
    await world.client.create(MESH_CLUSTERS, { metadata, spec } as never);
  }
  note(
    "Subset v2 owns the clusters of the region eu, the default subset all others. Every pod has an administrator's credentials for both.",
  );
  await watcher.until((facts) => wrongOwner(facts, "eu", "v2") ?? wrongOwner(facts, "us", "default"));
}

export async function writeEverywhere({ world, watcher, teller: { step, note } }: Stage<Facts>, others: Others): Promise<void> {
  step("Both pods write to both clusters, again and again, through their proxies");
  for (const pod of world.pods) for (const target of others.targets) void keepWriting(pod, target, writeByTunnel, others);
  const count = (pod: string, cluster: string, isWritten: boolean) =>
    others.answers.get(`${pod} ${cluster}`)?.filter((answer) => (answer === "200") === isWritten).length ?? 0;
  const pairs = [
    ["foo-operator-0", "us", "eu"],
    ["foo-operator-v2-0", "eu", "us"],
  ] as const;
  await watcher.until(() => {
    const isEnough = pairs.every(
      ([pod, own, other]) => Math.min(count(pod, own, true), count(pod, other, false)) >= ENOUGH_WRITES,
    );
    return isEnough ? undefined : "the pods have not written enough yet";
  });
  for (const [pod, own, other] of pairs) {
    check(count(pod, other, true) === 0, `${pod} should not have written to ${other}`);
    note(
      `${pod} writes to ${own}, and gets no connection to ${other}. Its client says: ${others.answers.get(`${pod} ${other}`)?.at(-1)}`,
    );
  }
}

export async function moveCluster({ world, watcher, teller: { step, note } }: Stage<Facts>, others: Others): Promise<void> {
  step("Cluster us gets the label region=eu: it moves from default to v2, while both pods write");
  const ref = { namespace: world.setting.namespace, name: "us" };
  await world.client.patch(MESH_CLUSTERS, ref, { type: "merge", body: { metadata: { labels: { region: "eu" } } } });
  const startMs = performance.now();
  await watcher.until((facts) => wrongOwner(facts, "us", "v2"));
  const answers = () => others.answers.get("foo-operator-v2-0 us") ?? [];
  await watcher.until(() => (answers().at(-1) === "200" ? undefined : "subset v2 does not write to us yet"));
  const seconds = ((performance.now() - startMs) / 1_000).toFixed(1);
  note(
    `${seconds} s later v2 writes there. This includes ${DRAIN_SECONDS} s for requests that the cluster had already accepted (drainSeconds).`,
  );
  await delay(10 * EVERY_MS);
}

export async function sumUp({ world, screen }: Stage<Facts>, others: Others): Promise<void> {
  others.isOver = true;
  const subsetOf = (pod: string) => world.pods.find(({ name }) => name === pod)?.subset || "default";
  const rows = others.targets.map((target) => {
    const writes = writesTo(target);
    const turns = writes.map(({ pod }) => subsetOf(pod)).filter((subset, at, all) => subset !== all[at - 1]);
    const overlaps = writes.filter(({ pod, fromMs }, at) =>
      writes.slice(0, at).some((earlier) => subsetOf(earlier.pod) !== subsetOf(pod) && earlier.untilMs > fromMs),
    );
    return { name: target.name, turns, count: writes.length, overlaps: overlaps.length };
  });
  const text = "Counted in the audit logs of the three clusters: every write that succeeded.";
  screen.say(["", ...noteLines(text, screen.width), ""]);
  const cells = rows.map(({ name, count, turns }) => [{ text: name }, { text: String(count) }, { text: turns.join(", then ") }]);
  screen.say(tableLines(["WHERE", "WRITES", "BY"], cells, screen.paint, screen.width));
  const wrong = rows.flatMap(({ name, overlaps }) => (overlaps > 0 ? [`${name}: ${overlaps} writes`] : []));
  screen.say(verdictLines("writes while another subset wrote there", wrong, screen.paint));
  check(
    rows.map(({ turns }) => turns.join()).join(" ") === "v2 default,v2 v2 default,v2",
    `the turns are wrong: ${JSON.stringify(rows)}`,
  );
  check(wrong.length === 0, "a cluster or namespace had two writers");
}

export async function keepWriting(
  pod: DemoPod,
  target: Target,
  write: (pod: DemoPod, target: Target) => Promise<string>,
  others: Others,
): Promise<void> {
  const answers: string[] = [];
  others.answers.set(`${pod.name} ${target.name}`, answers);
  while (!others.isOver) {
    answers.push(await write(pod, target));
    await delay(EVERY_MS);
  }
}

function wrongOwner({ clusters }: Facts, name: string, owner: string): string | undefined {
  const row = clusters.find((each) => each.name === name);
  return row?.ready === "True" && row.owner === owner
    ? undefined
    : `cluster ${name} does not belong to ${owner} yet: ${row?.message}`;
}
