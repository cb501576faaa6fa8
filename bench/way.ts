// The ways to the API server that the comparison measures: direct, through this project's proxy, and through the other one.
import { setTimeout as sleep } from "node:timers/promises";
import { eventually } from "../test/support/eventually.ts";
import type { Endpoint, Side } from "./world.ts";

export interface ProxyProcess {
  /** Of the newest process. */
  readonly pid: number;
  /** kill -9, then a new process on the same port. Resolves once it serves. */
  restart(): Promise<void>;
}

export interface Way {
  readonly name: "direct" | "ours" | "theirs";
  readonly endpoint: Endpoint;
  /** None on the direct way. */
  readonly proxy?: ProxyProcess;
}

/** This project's proxy. */
export function ownProcess({ pod }: Side): ProxyProcess {
  return {
    get pid() {
      return pod.proxy.pid;
    },
    async restart() {
      await pod.restartProxy();
      await eventually(async () => (await fetch(`${pod.healthUrl}/readyz`)).ok, 20_000);
    },
  };
}

/** The least time between a proxy's start and its operator's first request. This project's proxy warms up in it. */
const OPERATOR_START_MS = 1_000;

export async function restartAll(ways: readonly Way[]): Promise<void> {
  for (const { proxy } of ways) await proxy?.restart();
  await sleep(OPERATOR_START_MS);
}

/** Runs the work for each in turn. Each round starts with the next one, since the order may matter to a figure. */
export async function inTurns<K, T>(all: readonly K[], round: number, work: (each: K) => Promise<T>): Promise<ReadonlyMap<K, T>> {
  const done = new Map<K, T>();
  const first = round % all.length;
  for (const each of [...all.slice(first), ...all.slice(0, first)]) done.set(each, await work(each));
  return done;
}
