// Changes the Foo "one" of each namespace in turn at a steady rate, and measures how long each change waits until an operator has
// reconciled it. A change is reconciled when status.observedGeneration has reached its generation.
import { setTimeout as sleep } from "node:timers/promises";
import { FOOS, type Mesh } from "../mesh.ts";

const LOOK_MS = 300;

export interface SteadyWork {
  /** Changes of the Foos per second. */
  perSecond: number;
  /** The longest wait so far, also of a change that still waits. */
  readonly longestWait: { readonly namespace: string; readonly ms: number; readonly atMs: number };
  /** Ends the changes, and waits until all are reconciled or the time is over. */
  stop(withinMs: number): Promise<void>;
}

interface Change {
  readonly generation: number;
  readonly atMs: number;
}

/** @param namespaces each of them has a Foo "one" */
export function startSteadyWork(mesh: Mesh, namespaces: readonly string[], perSecond: number): SteadyWork {
  const waiting = new Map<string, Change[]>(namespaces.map((namespace) => [namespace, []]));
  let longestWait = { namespace: "", ms: 0, atMs: 0 };
  let isChanging = true;
  let isLooking = true;

  async function change(namespace: string, round: number): Promise<void> {
    const body = { spec: { message: `change ${round}` } };
    const atMs = Date.now();
    const { metadata } = await mesh.client.patch(FOOS, { namespace, name: "one" }, { type: "merge", body });
    waiting.get(namespace)?.push({ generation: metadata.generation ?? 0, atMs });
  }

  async function changeAll(): Promise<void> {
    for (let round = 0; isChanging; round++) {
      for (const namespace of namespaces) {
        if (!isChanging) return;
        await Promise.all([change(namespace, round), sleep(1000 / work.perSecond)]);
      }
    }
  }

  async function look(): Promise<void> {
    const { items } = await mesh.client.list(FOOS);
    const nowMs = Date.now();
    for (const { metadata, status } of items) {
      const { namespace = "", name } = metadata;
      const changes = waiting.get(namespace);
      const [oldest] = changes ?? [];
      if (changes === undefined || oldest === undefined || name !== "one") continue;
      const ms = nowMs - oldest.atMs;
      if (ms > longestWait.ms) longestWait = { namespace, ms, atMs: oldest.atMs };
      const left = changes.filter(({ generation }) => generation > (status?.observedGeneration ?? 0));
      waiting.set(namespace, left);
    }
  }

  async function lookOn(): Promise<void> {
    while (isLooking) {
      await look();
      await sleep(LOOK_MS);
    }
  }

  const work = {
    perSecond,
    get longestWait() {
      return longestWait;
    },
    async stop(withinMs: number) {
      isChanging = false;
      await changing;
      const deadlineMs = Date.now() + withinMs;
      while ([...waiting.values()].some((changes) => changes.length > 0) && Date.now() < deadlineMs) await sleep(LOOK_MS);
      isLooking = false;
      await looking;
    },
  };
  const [changing, looking] = [changeAll(), lookOn()];
  return work;
}
