// The steps of the act after the first, and the judgement of the audit log.
import { SHARDING_CONFIGS } from "../../../src/api/resources.ts";
import { NAMESPACES } from "../../../src/kube/client/resources.ts";
import { check, type Stage } from "../act.ts";
import { since } from "../teller.ts";
import type { World } from "../world.ts";
import { wrongFamily, wrongFoos } from "./expectations.ts";
import { CONFIG_FILE, type Family } from "./family.ts";
import { scale } from "./stateful-set.ts";
import { tallyShards } from "./tally.ts";
import { type Facts, summaryLines } from "./view.ts";
import { whileWriting } from "./writer.ts";

/** How many more namespaces than the fewest possible may move. */
const MAX_MOVED = 1.2;

type Step = (stage: Stage<Facts>) => Promise<void>;

export const divide = (family: Family): Step => {
  const { canary, replicas } = family;
  return async ({ world, watcher, teller: { step, note } }) => {
    const namespaces = await namespacesOf(world);
    step(`The ShardingConfig divides ${namespaces.length} namespaces among a canary shard and ${replicas - 1} normal shards`);
    note(
      `${CONFIG_FILE}: the canary shard owns ${canary.namespaces.join(" and ")}, the normal shards share the rest. Each namespace gets a Foo to reconcile.`,
    );
    for (const namespace of namespaces) await world.createFoo(namespace, `hello ${namespace}`);
    await watcher.until((facts) => wrongFamily(facts, family.shardsOf(replicas)));
    note(`${replicas} leaders at once: each shard has its own lock, and the operators know only one lock.`);
  };
};

/** Scales the StatefulSet while every Foo gets new messages. */
export const scaleWhileWriting = (family: Family, from: number, to: number): Step => {
  const { statefulSet, canary } = family;
  return async ({ world, watcher, teller: { step, note } }) => {
    step(
      `kubectl scale statefulset ${statefulSet} --replicas=${to}: from ${from - 1} to ${to - 1} normal shards while they write`,
    );
    note("Every Foo gets one message after the other, so that all shards write all the time.");
    const namespaces = await namespacesOf(world);
    const { reconciledBy: before } = await watcher.until(wrongFoos);
    const startedAt = performance.now();
    const took = await whileWriting(world, namespaces, async () => {
      await scale(world, family, to);
      await watcher.until((facts) => wrongPods(world, to) ?? wrongFamily(facts, family.shardsOf(to)));
      return since(startedAt);
    });
    const { reconciledBy: after } = await watcher.until(wrongFoos);
    const moved = namespaces.filter((namespace) => before.get(namespace) !== after.get(namespace));
    check(
      canary.namespaces.every((namespace) => !moved.includes(namespace)),
      "the namespaces of the canary shard should not move",
    );
    note(`${moved.length} of ${namespaces.length} namespaces moved, all done after ${took}.${await noWriterText(world)}`);
  };
};

export const judge = (family: Family, sizes: readonly number[]): Step => {
  const { canary, shardsOf } = family;
  return async ({ world, screen }) => {
    const scalings = sizes.slice(1).map((size, index) => ({
      title: `from ${(sizes[index] ?? 0) - 1} to ${size - 1}`,
      normalShards: shardsOf(size).slice(1),
    }));
    const tally = tallyShards(await world.audit(), { ...world.operator, canary: canary.shard, scalings });
    screen.say(summaryLines(tally, screen.paint, screen.width));
    check(
      tally.silent.length === 0,
      `the audit log should hold writes in ${tally.silent.join(", ")} before and after each scaling`,
    );
    check(tally.late.length === 0, "no namespace should have two writing shards at a time");
    for (const { title, moved, minimum } of tally.scalings) {
      const most = Math.ceil(MAX_MOVED * minimum);
      check(
        moved >= 1 && moved <= most,
        `${title} normal shards: at most ${most} namespaces should have moved, and ${moved} have`,
      );
    }
  };
};

async function namespacesOf({ client }: World): Promise<string[]> {
  return (await client.list(NAMESPACES)).items.map(({ metadata }) => metadata.name ?? "");
}

function wrongPods({ pods }: World, count: number): string | undefined {
  return pods.length === count ? undefined : `there should be ${count} pods, and there are ${pods.length}`;
}

/** By the status of the root, which knows it of the last handover. */
async function noWriterText({ client, setting }: World): Promise<string> {
  const { status } = await client.get(SHARDING_CONFIGS, { namespace: setting.namespace, name: setting.appName });
  const seconds = status?.lastHandover?.noWriterSeconds;
  return seconds === undefined ? "" : ` Nobody could write to one of them for at most ${seconds.toFixed(1)} s.`;
}
