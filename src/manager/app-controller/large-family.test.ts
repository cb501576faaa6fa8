// What a change costs is counted in look-ups, not in time: a test on a busy machine cannot measure milliseconds.
import { expect, it, vi } from "vitest";
import { appPod, proxyFacts } from "../../../test/support/pod-facts.ts";
import { group } from "../../../test/support/route-table.ts";
import { ROUTE } from "../../mesh/contract/route-type.ts";
import { type Issue, nextIssue } from "../../mesh/handover/issue.ts";
import { type AppPlan, planApp } from "../../mesh/handover/plan-app.ts";
import { type ProxyFacts, podKey } from "../../mesh/handover/proxy-facts.ts";
import { NO_CALLER_POLICY, type Snapshot } from "../../mesh/ownership/snapshot.ts";
import type { RouteTable } from "../../mesh/ownership/table.ts";
import { buildTable } from "../apps/compile/build-table.ts";
import type { RouteSpec } from "../apps/compile/route-spec.ts";

const SHARDS = 8;
const subsets = [...Array.from({ length: SHARDS }, (_, at) => `s${at}`), ""];
const pods = subsets.map((name) => appPod(`pod-${name}`, name));
const resources = [group("apps")];
let judged = 0;
const route: RouteSpec = {
  rules: [
    { kind: "sharded", resources, origin: "" },
    ...subsets.slice(0, SHARDS).map((subset) => ({ kind: "subset", subset, resources, origin: "" }) as const),
  ],
  sharedResources: [],
  places: [["", [1]]],
  expressions: [],
  membersOf({ name }) {
    judged++;
    return [1 + (Number(name.slice(1)) % SHARDS)];
  },
};

const named = (name: string) => ({ name, labels: {} });

function compiled(names: readonly string[], earlier?: RouteTable): RouteTable {
  const steps = buildTable(route, names.map(named), () => false, earlier && { table: earlier, gone: [] });
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value as RouteTable;
  }
}

/** The family after all proxies have acknowledged its table; then one namespace is born. */
function birth(namespaces: number) {
  const before = compiled(Array.from({ length: namespaces }, (_, at) => `n${at}`));
  let enforced: ReadonlyMap<string, Snapshot> = new Map();
  const factsOf = (key: string): ProxyFacts | undefined => proxyFacts({ acknowledged: enforced.get(key) });
  const planned = (bySpec: RouteTable): AppPlan => {
    const rest = { lockName: "lock", callers: NO_CALLER_POLICY, words: undefined, isPaused: false, retainsLosses: true };
    return planApp({ ...rest, app: { namespace: "shop", name: "app" }, pods, factsOf, bySpec, subsets });
  };
  let issue: Issue | undefined;
  const serve = (plan: AppPlan) => {
    const last = nextIssue(issue, 0, plan, pods, factsOf);
    issue = last;
    const updates = pods.map((pod) => {
      const next = last.snapshots.get(plan.rulesFor(pod).digest);
      if (next === undefined) throw new Error("no snapshot");
      const base = enforced.get(podKey(pod));
      return { pod, next, bytes: base === undefined ? ROUTE.encode(next) : ROUTE.delta?.encode(base, next) };
    });
    enforced = new Map(updates.map(({ pod, next }) => [podKey(pod), next]));
    return updates.map(({ bytes }) => bytes?.length ?? Number.NaN);
  };
  serve(planned(before));
  serve(planned(before));
  judged = 0;
  const looks = [vi.spyOn(Map.prototype, "get"), vi.spyOn(Map.prototype, "has"), vi.spyOn(Set.prototype, "has")];
  const after = compiled([`n${namespaces}`], before);
  const sizes = serve(planned(after));
  const count = looks.reduce((sum, { mock }) => sum + mock.calls.length, 0);
  for (const look of looks) look.mockRestore();
  return { judged, looks: count, sizes, knows: after.classOf.has(`n${namespaces}`) };
}

it("a birth judges one namespace and tells each proxy of one, and looks only at the namespaces of its new shard", () => {
  const [small, large] = [birth(10 * SHARDS), birth(1_000 * SHARDS)];
  expect([small.judged, large.judged, large.knows]).toEqual([1, 1, true]);
  expect(Math.max(...large.sizes)).toBeLessThan(100);
  expect(large.looks - small.looks).toBeLessThan(1_100); // the new shard has 990 namespaces more
});
