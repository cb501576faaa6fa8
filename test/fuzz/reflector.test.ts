// Whatever happens to the objects and to the watches, and in whatever order: the store ends up equal to the API server,
// and the changes that handlers were told are a possible history of it.
import fc from "fast-check";
import { expect, test } from "vitest";
import { MeshError } from "../../src/base/errors.ts";
import { silentLogger } from "../../src/base/log.ts";
import { CONFIG_MAPS, type ConfigMap } from "../../src/kube/client/resources.ts";
import { StatusError } from "../../src/kube/status.ts";
import { createReflector } from "../../src/runtime/reflector.ts";
import type { Change } from "../../src/runtime/store.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { createFakeKubeClient, type FakeKubeClient } from "../support/fake-kube-client.ts";
import { FUZZ_SEED, shareOf } from "../support/fuzz.ts";

const name = fc.constantFrom("x", "y", "z");
const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant("put" as const), name, data: fc.nat({ max: 9 }) }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("remove" as const), name }) },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant("end" as const), how: fc.constantFrom("clean", "reset", "expired", "garbage") }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("outage" as const), calls: fc.integer({ min: 1, max: 3 }) }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant("pass" as const), ms: fc.nat({ max: 3_000 }) }) },
);
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never;

function endWith(how: string): unknown {
  if (how === "clean") return undefined;
  if (how === "expired") return new StatusError("Expired", "too old resource version");
  return new MeshError(how === "garbage" ? "WATCH_MALFORMED" : "KUBE_UNREACHABLE", how);
}

function apply(client: FakeKubeClient, next: Step): void {
  switch (next.kind) {
    case "put":
      client.put(CONFIG_MAPS, { metadata: { namespace: "a", name: next.name }, data: { value: String(next.data) } });
      break;
    case "remove":
      if (client.read(CONFIG_MAPS, { namespace: "a", name: next.name }))
        client.remove(CONFIG_MAPS, { namespace: "a", name: next.name });
      break;
    case "end":
      client.endWatches(endWith(next.how));
      break;
    case "outage": {
      let left = next.calls;
      client.before = () => {
        if (left-- > 0) throw new MeshError("KUBE_UNREACHABLE", "outage");
      };
      break;
    }
    default:
      break;
  }
}

/** Replays a change; fails on one that could not have happened. */
function replay(world: Map<string, ConfigMap>, gone: Set<unknown>, change: Change<ConfigMap>): void {
  const key = change.object.metadata.name ?? "";
  const before = world.get(key);
  if (change.type === "added") expect(before).toBeUndefined();
  else expect(before?.metadata.uid).toBe(change.object.metadata.uid);
  if (change.type === "updated") {
    expect(change.previous).toBe(before);
    expect(Number(change.object.metadata.resourceVersion)).toBeGreaterThan(Number(before?.metadata.resourceVersion));
  }
  expect(gone).not.toContain(change.object.metadata.uid);
  if (change.type === "deleted") gone.add(change.object.metadata.uid);
  if (change.type === "deleted") world.delete(key);
  else world.set(key, change.object);
}

test("the store never loses and never makes up a change", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
      const clock = createFakeClock();
      const client = createFakeKubeClient();
      const reflector = createReflector({ client, resource: CONFIG_MAPS, clock, random: () => 0.5, log: silentLogger() });
      const told = new Map<string, ConfigMap>();
      const gone = new Set<unknown>();
      const impossible: unknown[] = [];
      reflector.store.onChange((change) => {
        try {
          replay(told, gone, change);
        } catch (error) {
          impossible.push(error);
        }
      });
      await reflector.start(new AbortController().signal);
      for (const next of steps) {
        apply(client, next);
        if (next.kind === "pass") await clock.advance(next.ms);
      }
      await clock.advance(120_000);
      client.before = () => {};
      const truth = [...(await client.list(CONFIG_MAPS)).items].sort(byName);
      expect(impossible).toEqual([]);
      expect([...reflector.store.list()].sort(byName)).toEqual(truth);
      expect([...told.values()].sort(byName)).toEqual(truth);
      await reflector.stop();
      expect(clock.pending).toBe(0);
    }),
    { seed: FUZZ_SEED, interruptAfterTimeLimit: shareOf(4_000), numRuns: 500 },
  );
});

function byName(a: ConfigMap, b: ConfigMap): number {
  return (a.metadata.name ?? "") < (b.metadata.name ?? "") ? -1 : 1;
}
