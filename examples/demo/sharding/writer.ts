// Gives the operator work: every Foo gets new messages, one after the other.
import { setTimeout as delay } from "node:timers/promises";
import type { World } from "../world.ts";

const EVERY_MS = 40;

/** Writes for as long as `work` runs, and then to the end of the round, so that each namespace gets at least one message. */
export async function whileWriting<T>(world: World, namespaces: readonly string[], work: () => Promise<T>): Promise<T> {
  let isDone = false;
  const write = async () => {
    while (!isDone) {
      for (const namespace of namespaces) {
        await world.sayFoo(namespace, `hello ${namespace}, ${performance.now().toFixed(0)} ms`);
        await delay(EVERY_MS);
      }
    }
  };
  const working = work().finally(() => {
    isDone = true;
  });
  const [result] = await Promise.all([working, write()]);
  return result;
}
