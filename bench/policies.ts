// Measures what traffic policies add to a small request: the same GET through a proxy without rules, with 10
// and with 1,000 rules, in turn. And the memory that the engine keeps after 100,000 different objects have
// failed.
import { stringify } from "yaml";
import { CIRCUIT_BREAKERS } from "../src/api/resources.ts";
import { collectGarbage } from "../src/base/collect-garbage.ts";
import { createEngine } from "../src/policy/engine/engine.ts";
import type { LimiterSpec } from "../src/policy/policy.ts";
import { eventually } from "../test/support/eventually.ts";
import { limitRule, policyRequest } from "../test/support/policies.ts";
import { load } from "./load.ts";
import { GET } from "./requests.ts";
import { type Fact, median, quantile, type Row, type Target } from "./table.ts";
import { OWN_NAMESPACE, type Side, type World } from "./world.ts";

const SIZES = [0, 10, 1_000] as const;
const RULES_OF_AN_OBJECT = 50;
const DURATION_MS = 1_500;
const TARGETS: Readonly<Record<number, Target>> = { 1000: { of: "added", atMost: 0.02 } };

/** @param rounds one more round comes before them and is not measured, so that caches are warm */
export async function policyRows(world: World, rounds: number): Promise<Row[]> {
  const sides: { readonly size: number; readonly side: Side; readonly medians: number[] }[] = [];
  for (const size of SIZES) sides.push({ size, side: await sideWithRules(world, size), medians: [] });
  for (let round = 0; round <= rounds; round++) {
    // The order changes by round, since those that come later benefit from warm caches.
    const first = round % sides.length;
    for (const { side, medians } of [...sides.slice(first), ...sides.slice(0, first)]) {
      const { times } = await load(side, GET, { connections: 1, durationMs: DURATION_MS });
      if (round > 0) medians.push(quantile(times, 0.5));
    }
  }
  const [without, ...others] = sides;
  return others.map(({ size, medians }) => ({
    section: "GET, policies (DIRECT: the proxy without rules)",
    name: `${size} rules, p50`,
    unit: "ms",
    direct: median(without?.medians ?? []),
    proxied: median(medians),
    ...(TARGETS[size] === undefined ? {} : { target: TARGETS[size] }),
  }));
}

/** A pod whose proxy enforces so many rules. One of them matches the GET, and never refuses it. */
async function sideWithRules({ mesh, addSide }: World, size: number): Promise<Side> {
  const labels = { subset: "one", policies: `rules-${size}` };
  const side = await addSide({ name: `bench-rules-${size}`, labels });
  for (let first = 0; first < size; first += RULES_OF_AN_OBJECT) {
    const count = Math.min(RULES_OF_AN_OBJECT, size - first);
    await mesh.apply(circuitBreaker(`rules-${size}-${first}`, labels, first, count));
  }
  await eventually(async () => {
    const { items } = await mesh.client.list(CIRCUIT_BREAKERS, { namespace: "foo-system" });
    const own = items.filter(({ metadata }) => metadata.name?.startsWith(`rules-${size}-`));
    return own.every(({ status }) => status?.targets?.synced === 1 && status.targets.total === 1);
  }, 60_000);
  return side;
}

function circuitBreaker(name: string, matchLabels: Readonly<Record<string, string>>, first: number, count: number): string {
  return stringify({
    apiVersion: "ctrlmesh.kusionstack.io/v1alpha1",
    kind: "CircuitBreaker",
    metadata: { name, namespace: "foo-system" },
    spec: {
      selector: { matchLabels },
      rateLimitings: Array.from({ length: count }, (_, index) => {
        const at = first + index;
        const namespaces = [at === 0 ? OWN_NAMESPACE : `other-${at}`];
        return {
          name: `rule-${at}`,
          resourceRules: [{ apiGroups: [""], resources: ["configmaps"], verbs: ["get", "update"], namespaces }],
          bucket: { burst: 1_000_000, interval: "1s", limit: 1_000_000 },
          triggerPolicy: "LimiterOnly",
        };
      }),
    },
  });
}

const REQUESTS = 2_000;
const REPEATS = 20;

/** What a request costs that matches so many rules, and all let it pass: to match, decide, charge and settle. */
export function matchingRules(): Fact[] {
  const kinds: Readonly<Record<string, LimiterSpec>> = {
    buckets: { kind: "bucket", perSecond: 1e9, burst: 1e9 },
    breakers: { kind: "breaker", trigger: { percent: 50, minimumRequests: 20, windowMs: 30_000 }, sleepMs: 60_000 },
  };
  return Object.entries(kinds).map(([name, limiter]) => ({
    name: `policies, us per request that N ${name} let pass`,
    value: [1, 10, 1_000].map((count) => `${costOf(limiter, count).toFixed(2)} with ${count}`).join(", "),
  }));
}

/** In microseconds, in the quickest of some rounds. */
function costOf(limiter: LimiterSpec, count: number): number {
  let nowMs = 1e9;
  const engine = createEngine({ now: () => nowMs });
  engine.update(Array.from({ length: count }, (_, at) => limitRule(limiter, { name: `rule-${at}` })));
  const request = policyRequest("GET /api/v1/namespaces/a/configmaps/one");
  const round = () => {
    const startedMs = performance.now();
    for (let at = 0; at < REQUESTS; at++) {
      nowMs += 0.01;
      const decision = engine.decide(request);
      if (decision.kind !== "permitted") throw new Error("a rule has refused the request");
      decision.permit.settle({ kind: "answered", status: 200, tookMs: 1 });
      decision.permit.release();
    }
    return ((performance.now() - startedMs) * 1_000) / REQUESTS;
  };
  return Math.min(...Array.from({ length: REPEATS }, round));
}

const FAILING_OBJECTS = 100_000;

/** The memory of this process before and after so many different objects have failed under a backoff. */
export function backoffMemory(): Fact[] {
  const engine = createEngine({ now: () => 0 });
  engine.update([limitRule({ kind: "backoff", baseMs: 1_000, maxMs: 60_000, failures: 1 })]);
  const failed = (from: number, to: number) => {
    for (let at = from; at < to; at++) {
      const decision = engine.decide(policyRequest(`GET /api/v1/namespaces/a/configmaps/object-${at}`));
      if (decision.kind !== "permitted") throw new Error(`object-${at} has not failed before`);
      decision.permit.settle({ kind: "answered", status: 500, tookMs: 1 });
      decision.permit.release();
    }
    collectGarbage();
    const { heapUsed, rss } = process.memoryUsage();
    return `${(heapUsed / 1e6).toFixed(1)} (${Math.round(rss / 1e6)})`;
  };
  const counts = [0, FAILING_OBJECTS / 10, FAILING_OBJECTS, 2 * FAILING_OBJECTS];
  const values = counts.map((count, at) => `${failed(counts[at - 1] ?? 0, count)} after ${count}`);
  return [{ name: "backoff, MB of heap (resident) by failing objects", value: values.join(", ") }];
}
