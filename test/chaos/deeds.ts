// What the chaos does to the processes: kills, stops and outages. Each deed leaves the world so that it can mend by itself, but for
// what is only stopped: `untilQuiet` waits for it to go on.
import { setTimeout as sleep } from "node:timers/promises";
import type { Supervised } from "../support/supervised.ts";
import type { ChaosWorld } from "./world.ts";

export interface Deeds {
  /** Does one thing at random. @returns what it did, in words */
  next(): Promise<string>;
  /** Ends what goes on: whatever is stopped goes on, and the API server runs. */
  untilQuiet(): Promise<void>;
}

/** How often each is done, of all together. */
const WEIGHTS = {
  "kill manager": 4,
  "kill leading manager": 2,
  "kill proxy": 6,
  "kill operator": 3,
  "stop manager": 3,
  "stop proxy": 5,
  "stop API server": 2,
  "kill API server": 1,
  "replace pod": 1,
  "lose node": 2,
} as const;
export type Deed = keyof typeof WEIGHTS;

/** As long as the API server may believe in a token after its pod's object is gone, and a little more. */
const LOST_NODE_MS = 12_000;

/** The lease of the managers lasts 5 s: what is stopped for longer has lost it. */
const MAX_STOP_MS = 9_000;
/** An API server that is stopped for long is as one that is killed. */
const MAX_API_STOP_MS = 2_500;
const MAX_OUTAGE_MS = 4_000;

export interface DeedOptions {
  /** Also deletes pods' objects while their processes go on. */
  readonly lostNodes: boolean;
}

export function createDeeds(world: ChaosWorld, random: () => number, { lostNodes }: DeedOptions): Deeds {
  const running = new Set<Promise<void>>();
  const replacing = new Set<string>();
  let apiServerIsDown = false;
  const between = (least: number, most: number) => Math.round(least + random() * (most - least));
  const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)] as T;
  const aside = (work: Promise<void>) => {
    const done = work.finally(() => running.delete(done));
    running.add(done);
  };
  const pod = () => pick([...world.pods.values()]);
  const stopFor = (process: Supervised, ms: number) => {
    process.pause();
    aside(sleep(ms).then(() => process.resume()));
  };

  const DEEDS: Readonly<Record<Deed, () => Promise<string>>> = {
    async "kill manager"() {
      const index = between(0, world.mesh.managers.length - 1);
      await world.mesh.managers[index]?.crash();
      return `manager ${index}`;
    },
    async "kill leading manager"() {
      const index = await world.leadingManager();
      if (index !== undefined) await world.mesh.managers[index]?.crash();
      return `manager ${index ?? "(nobody leads)"}`;
    },
    async "kill proxy"() {
      const { name, processes } = pod();
      await processes.proxy.crash();
      return name;
    },
    async "kill operator"() {
      const { name, processes } = pod();
      await processes.operator?.crash();
      return name;
    },
    async "stop manager"() {
      const index = between(0, world.mesh.managers.length - 1);
      const ms = between(500, MAX_STOP_MS);
      const manager = world.mesh.managers[index];
      if (manager !== undefined) stopFor(manager, ms);
      return `manager ${index} for ${ms} ms`;
    },
    async "stop proxy"() {
      const { name, processes } = pod();
      const ms = between(500, MAX_STOP_MS);
      stopFor(processes.proxy, ms);
      return `${name} for ${ms} ms`;
    },
    async "stop API server"() {
      if (apiServerIsDown) return "(is down)";
      const ms = between(200, MAX_API_STOP_MS);
      const { pid } = world.kube;
      process.kill(pid, "SIGSTOP");
      apiServerIsDown = true;
      aside(
        sleep(ms).then(() => {
          process.kill(pid, "SIGCONT");
          apiServerIsDown = false;
        }),
      );
      return `for ${ms} ms`;
    },
    async "kill API server"() {
      if (apiServerIsDown) return "(is down)";
      const ms = between(0, MAX_OUTAGE_MS);
      apiServerIsDown = true;
      await world.kube.crash();
      aside(
        sleep(ms)
          .then(() => world.kube.restart())
          .then(() => {
            apiServerIsDown = false;
          }),
      );
      return `for ${ms} ms and its start`;
    },
    async "replace pod"() {
      const { name } = pod();
      if (replacing.has(name)) return `${name} (is being replaced)`;
      replacing.add(name);
      aside(world.replacePod(name).finally(() => void replacing.delete(name)));
      return name;
    },
    async "lose node"() {
      const { name } = pod();
      if (replacing.has(name)) return `${name} (is being replaced)`;
      replacing.add(name);
      aside(world.loseNode(name, LOST_NODE_MS).finally(() => void replacing.delete(name)));
      return `of ${name}: its object is deleted, its processes go on for ${LOST_NODE_MS} ms`;
    },
  };
  const weights = Object.entries(WEIGHTS).filter(([deed]) => lostNodes || deed !== "lose node");
  const all = weights.flatMap(([deed, weight]) => Array<Deed>(weight).fill(deed as Deed));

  return {
    async next() {
      const deed = pick(all);
      return `${deed}: ${await DEEDS[deed]()}`;
    },
    async untilQuiet() {
      while (running.size > 0) await Promise.all(running);
    },
  };
}
