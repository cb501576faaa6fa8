// Creates Gadgets while their namespaces move to and fro and the operator's certificate changes twice, and judges every review. Used by
// test/e2e/operator-webhooks.test.ts, and with more calls by a nightly test.
import { startAdmissionLoad } from "./admission-load.ts";
import type { GadgetWorld, Judgement } from "./gadget-world.ts";

export interface Admissions extends Judgement {
  readonly calls: number;
  readonly moves: number;
  readonly failed: readonly string[];
  /** The dry runs' reviews that the operator answered. */
  readonly reviews: number;
}

/**
 * @param calls how many creates at least; each takes two reviews
 * @param clients how many create at the same time, as fast as they can
 */
export async function admitWhileMoving(world: GadgetWorld, calls: number, clients = 8): Promise<Admissions> {
  const namespaces = ["moving-a", "moving-b"] as const;
  await world.addNamespace(namespaces[0], "");
  await world.addNamespace(namespaces[1], "v2");
  const load = startAdmissionLoad(world.client, namespaces, clients);
  let moves = 0;
  do {
    for (const [to, other] of [
      ["v2", ""],
      ["", "v2"],
    ] as const) {
      await Promise.all([world.move(namespaces[0], to), world.move(namespaces[1], other)]);
      moves += 2;
      if (moves <= 4) await world.rotate();
    }
  } while (load.calls.length < calls);
  await load.end();
  const reviews = (await world.reviews()).filter(({ name, dryRun }) => dryRun && name.startsWith("load-")).length;
  const failed = load.calls.flatMap(({ error }) => error ?? []);
  return { ...(await world.judge(load.calls)), calls: load.calls.length, moves, failed, reviews };
}
