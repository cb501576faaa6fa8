// The chaos actions on processes: kills, stops and outages. After each action the world recovers by itself.
// Stopped processes continue after some time, and `waitIdle` waits until they have continued.
import { setTimeout as sleep } from "node:timers/promises";
import type { RunnerPod } from "../support/pod-runner.ts";
import type { Supervised } from "../support/supervised.ts";
import type { ChaosWorld } from "./world.ts";

export interface Actions {
  /**
   * Runs one random action.
   * @returns a description of the action
   */
  next(): Promise<string>;
  /** Waits until every stopped process continues and the API server runs. */
  waitIdle(): Promise<void>;
}

/** The weight of each action in the random selection. */
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
  "kill sharded proxy": 3,
  "kill sharded operator": 1,
  "delete sharded pod": 2,
} as const;
export type Action = keyof typeof WEIGHTS;

/** A little longer than the API server accepts a token after its pod is deleted. */
const LOST_NODE_MS = 12_000;

/** The managers' lease lasts 5 s, so a longer stop loses the lease. */
const MAX_STOP_MS = 9_000;
/** A longer stop would have the same effect as a kill. */
const MAX_API_STOP_MS = 2_500;
const MAX_OUTAGE_MS = 4_000;

export interface ActionOptions {
  /** Also deletes pods whose processes continue. */
  readonly lostNodes: boolean;
}

export function createActions(world: ChaosWorld, random: () => number, { lostNodes }: ActionOptions): Actions {
  const running = new Set<Promise<void>>();
  const replacing = new Set<string>();
  let apiServerIsDown = false;
  const between = (least: number, most: number) => Math.round(least + random() * (most - least));
  const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)] as T;
  const inBackground = (work: Promise<void>) => {
    const done = work.finally(() => running.delete(done));
    running.add(done);
  };
  const pod = () => pick([...world.pods.values()]);
  const sharded = (): RunnerPod | undefined => pick([...world.family.pods.values()]);
  const stopFor = (process: Supervised, ms: number) => {
    process.pause();
    inBackground(sleep(ms).then(() => process.resume()));
  };

  const ACTIONS: Readonly<Record<Action, () => Promise<string>>> = {
    async "kill manager"() {
      const index = between(0, world.mesh.managers.length - 1);
      await world.mesh.managers[index]?.crash();
      return `manager ${index}`;
    },
    async "kill leading manager"() {
      const index = await world.leadingManager();
      if (index !== undefined) await world.mesh.managers[index]?.crash();
      return `manager ${index ?? "(no leader)"}`;
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
      inBackground(
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
      inBackground(
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
      inBackground(world.replacePod(name).finally(() => void replacing.delete(name)));
      return name;
    },
    async "kill sharded proxy"() {
      const one = sharded();
      one?.processes.proxy?.kill("SIGKILL");
      return one?.name ?? "(none)";
    },
    async "kill sharded operator"() {
      const one = sharded();
      one?.processes.operator?.kill("SIGKILL");
      return one?.name ?? "(none)";
    },
    async "delete sharded pod"() {
      const one = sharded();
      if (one !== undefined) await world.family.deletePod(one.name);
      return one?.name ?? "(none)";
    },
    async "lose node"() {
      const { name } = pod();
      if (replacing.has(name)) return `${name} (is being replaced)`;
      replacing.add(name);
      inBackground(world.loseNode(name, LOST_NODE_MS).finally(() => void replacing.delete(name)));
      return `of ${name}: its object is deleted, its processes continue for ${LOST_NODE_MS} ms`;
    },
  };
  const weights = Object.entries(WEIGHTS).filter(([action]) => lostNodes || action !== "lose node");
  const all = weights.flatMap(([action, weight]) => Array<Action>(weight).fill(action as Action));

  return {
    async next() {
      const action = pick(all);
      return `${action}: ${await ACTIONS[action]()}`;
    },
    async waitIdle() {
      while (running.size > 0) await Promise.all(running);
    },
  };
}
