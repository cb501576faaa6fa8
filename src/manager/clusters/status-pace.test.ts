// The writes of a MeshCluster's status while its API server answers otherwise each time.
import fc from "fast-check";
import { expect, test } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { createFakeKubeClient } from "../../../test/support/fake-kube-client.ts";
import { budget } from "../../../test/support/fuzz.ts";
import { fleetCluster } from "../../../test/support/mesh-cluster.ts";
import type { MeshCluster } from "../../api/mesh-cluster.ts";
import { MESH_CLUSTERS } from "../../api/resources.ts";
import { acceptClusters } from "../apps/accept-clusters.ts";
import { createPublishedPlans } from "../apps/published-plans.ts";
import type { CredentialEnd } from "../cluster-namespaces/credential-ends.ts";
import type { NamespacesState } from "../cluster-namespaces/namespaces-state.ts";
import { createKnownDecisions } from "../decisions/known-decisions.ts";
import { createClustersReconciler } from "./reconciler.ts";

const MINUTE_MS = 60_000;
const MOST_A_MINUTE = 20;
const DEBOUNCE_MS = 500;
const LATEST_MS = 6_000;
const NAMES = ["eu", "us"];

interface Answer {
  readonly afterMs: number;
  readonly cluster: string;
  readonly state: NamespacesState;
  /** Of the certificate that the server shows. */
  readonly lifeDays: number;
}

function setup() {
  const clock = createFakeClock();
  const client = createFakeKubeClient();
  const terminate = { kubeconfigSecret: "kubeconfig" };
  for (const name of NAMES)
    client.put(MESH_CLUSTERS, fleetCluster(name, { servers: [`https://${name}.example`], interception: "Terminate", terminate }));
  const list = () => NAMES.flatMap((name) => client.read<MeshCluster>(MESH_CLUSTERS, { namespace: "fleet", name }) ?? []);
  const answers = new Map<string, Answer>();
  const ends = new Map<string, readonly CredentialEnd[]>();
  const events: number[] = [];
  const writes = new Map<string, number[]>(NAMES.map((name) => [name, []]));
  let refusedName: string | undefined;
  client.before = ({ verb, name }) => {
    if (verb !== "patch") return;
    if (name === refusedName) throw new Error("not accepted");
    writes.get(name)?.push(clock.monotonicMs());
  };
  const { reconcile } = createClustersReconciler({
    client,
    store: { list },
    apps: { list: () => [] },
    plans: createPublishedPlans(),
    clusters: { of: () => acceptClusters(list()), decisions: createKnownDecisions() },
    watched: {
      stateOf: ({ name }) => answers.get(name)?.state ?? { reason: "Listed", message: "" },
      endsOf: ({ name }) => ends.get(name) ?? [],
    },
    events: { event: () => void events.push(clock.monotonicMs()) },
    clock,
  });
  let dueMs = Number.POSITIVE_INFINITY;
  /** Lets this time pass, as the controller's queue does. */
  const pass = async (ms: number) => {
    const endMs = clock.monotonicMs() + ms;
    while (dueMs <= endMs) {
      await clock.advance(dueMs - clock.monotonicMs());
      const { requeueAfterMs = Number.POSITIVE_INFINITY } = await reconcile(
        { namespace: "", name: "fleet" },
        new AbortController().signal,
      );
      dueMs = clock.monotonicMs() + requeueAfterMs;
    }
    await clock.advance(endMs - clock.monotonicMs());
  };
  return {
    reconcile: () => reconcile({ namespace: "", name: "fleet" }, new AbortController().signal),
    refuse: (name: string) => {
      refusedName = name;
    },
    events,
    writes: (name: string) => writes.get(name) ?? [],
    nowMs: clock.monotonicMs,
    pass,
    async answer(answer: Answer) {
      await pass(answer.afterMs);
      answers.set(answer.cluster, answer);
      ends.set(answer.cluster, [{ of: "ServerCertificate", endsMs: clock.now() + answer.lifeDays * 86_400_000 }]);
      dueMs = Math.min(dueMs, clock.monotonicMs() + DEBOUNCE_MS);
    },
    /** When the certificate ends, as the status tells it and as the server shows it. */
    toldEnd: (name: string) =>
      Date.parse(list().find(({ metadata }) => metadata.name === name)?.status?.earliestExpiry?.time ?? ""),
    shownEnd: (name: string) => ends.get(name)?.[0]?.endsMs,
  };
}

/** The most within a minute. */
function mostInOneMinute(timesMs: readonly number[]): number {
  return Math.max(0, ...timesMs.map((from) => timesMs.filter((at) => at >= from && at < from + MINUTE_MS).length));
}

const refusal = (code: number, lifeDays: number, afterMs = 250): Answer => ({
  afterMs,
  cluster: "eu",
  state: { reason: "Forbidden", message: `HTTP ${code}` },
  lifeDays,
});

test("a server with another certificate and error each time costs at most 20 writes and Events a minute, and delays no other status", async () => {
  const world = setup();
  await world.answer(refusal(401, 100));
  await world.pass(MINUTE_MS);
  const before = world.writes("eu").length;
  for (let at = 0; at < 1_200; at++) await world.answer(refusal(400 + (at % 100), at % 20));
  expect(world.writes("eu")[before]).toBeLessThanOrEqual(MINUTE_MS + 1_000);
  expect(mostInOneMinute(world.writes("eu"))).toBeLessThanOrEqual(MOST_A_MINUTE);
  expect(mostInOneMinute(world.events)).toBeLessThanOrEqual(MOST_A_MINUTE);
  const otherMs = world.nowMs();
  await world.answer({ ...refusal(403, 50, 0), cluster: "us" });
  await world.pass(DEBOUNCE_MS);
  expect(world.writes("us").at(-1)).toBeGreaterThanOrEqual(otherMs);
  expect(world.writes("us").at(-1)).toBeLessThanOrEqual(otherMs + DEBOUNCE_MS);
});

test("whatever servers answer, a status is written at most 20 times a minute, and tells the last answer within 6 s of it", async () => {
  const answer = fc.record({
    afterMs: fc.oneof(fc.integer({ min: 0, max: 2_000 }), fc.integer({ min: 0, max: 30_000 })),
    cluster: fc.constantFrom(...NAMES),
    state: fc.record({
      reason: fc.constantFrom("Listed" as const, "Forbidden" as const, "Unreachable" as const),
      message: fc.constantFrom("HTTP 401", "HTTP 403", "no connection"),
    }),
    lifeDays: fc.constantFrom(0, 1, 10, 13, 100),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(answer, { minLength: 1, maxLength: 150, size: "max" }), async (answers) => {
      const world = setup();
      for (const each of answers) await world.answer(each);
      await world.pass(DEBOUNCE_MS + LATEST_MS);
      for (const name of NAMES) {
        expect(mostInOneMinute(world.writes(name))).toBeLessThanOrEqual(MOST_A_MINUTE);
        const shownMs = world.shownEnd(name);
        if (shownMs !== undefined) expect(world.toldEnd(name)).toBe(Math.floor(shownMs / 1_000) * 1_000);
      }
    }),
    budget(),
  );
});

test("a status that the API server does not accept is tried again, and the others are written", async () => {
  const world = setup();
  world.refuse("eu");
  await expect(world.reconcile()).rejects.toThrow("not accepted");
  expect(world.writes("us")).toHaveLength(1);
});
