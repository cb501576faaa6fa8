// Tables that are made one from another share what did not change. The plan must not depend on that.
import fc from "fast-check";
import { expect, it } from "vitest";
import { budget } from "../../../test/support/fuzz.ts";
import { appPod, proxyFacts } from "../../../test/support/pod-facts.ts";
import { group, sharded, subset, tableFromBytes } from "../../../test/support/route-table.ts";
import { BUCKETS } from "../../kube/place.ts";
import { tableToBytes } from "../contract/table-json.ts";
import { withPlaces } from "../ownership/place-lists.ts";
import { NO_CALLER_POLICY, type Snapshot } from "../ownership/snapshot.ts";
import type { RouteTable } from "../ownership/table.ts";
import { type AppPlan, planApp } from "./plan-app.ts";
import { type ProxyFacts, podKey } from "./proxy-facts.ts";

const APP = { namespace: "shop", name: "app" };
const SUBSETS = ["s1", "s2", "s3", ""];
const RULES = [sharded(group("apps")), ...["s1", "s2", "s3"].map((name) => subset(name, group("apps")))];
const pods = SUBSETS.map((name) => appPod(`pod-${name}`, name));

/** One proxy of each subset: what it enforces, and what it was sent. */
interface Held {
  acknowledged: Snapshot | undefined;
  outstanding: Snapshot | undefined;
}

function plan(bySpec: RouteTable, held: readonly Held[], copy: (table: RouteTable) => RouteTable): AppPlan {
  const copied = (snapshot: Snapshot | undefined) => snapshot && { ...snapshot, table: copy(snapshot.table) };
  const facts = new Map<string, ProxyFacts>(
    pods.map((pod, at) => [
      podKey(pod),
      proxyFacts({ acknowledged: copied(held[at]?.acknowledged), outstanding: copied(held[at]?.outstanding) }),
    ]),
  );
  const rest = { lockName: "lock", callers: NO_CALLER_POLICY, words: undefined, guard: undefined, isPaused: false };
  return planApp({
    ...rest,
    app: APP,
    pods,
    factsOf: (key) => facts.get(key),
    bySpec: copy(bySpec),
    subsets: SUBSETS,
    maxMovingPercent: undefined,
    retainsLosses: true,
  });
}

const name = fc.constantFrom("", BUCKETS[1] ?? "", BUCKETS[2] ?? "", ..."abcdef");
const step = fc.oneof(
  fc.record({ kind: fc.constant("change"), members: fc.dictionary(name, fc.option(fc.constantFrom(1, 2, 3)), { maxKeys: 3 }) }),
  fc.record({ kind: fc.constant("remap"), shift: fc.constantFrom(1, 2) }),
  fc.record({ kind: fc.constant("send"), pod: fc.nat(SUBSETS.length - 1) }),
  fc.record({ kind: fc.constant("acknowledge"), pod: fc.nat(SUBSETS.length - 1) }),
);

it("is the same from tables that share their classes and from tables that share nothing, after any changes and answers", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
      let table: RouteTable = {
        rules: RULES,
        classes: [[1]],
        classOf: new Map([["", 0]]),
        sharedResources: [],
        fenced: new Set(),
      };
      const held: Held[] = SUBSETS.map(() => ({ acknowledged: undefined, outstanding: undefined }));
      const change = (members: ReadonlyMap<string, readonly number[] | undefined>) => {
        table = { ...table, ...withPlaces(table, members) };
      };
      for (const each of steps) {
        const shared = plan(table, held, (same) => same);
        const alone = plan(table, held, (other) => tableFromBytes(tableToBytes(other)));
        const digests = ({ rulesFor }: AppPlan) => pods.map((pod) => rulesFor(pod).digest);
        expect(digests(shared)).toEqual(digests(alone));
        expect(waitsIn(shared)).toEqual(waitsIn(alone));
        if (each.kind === "change" && "members" in each) {
          change(new Map(Object.entries(each.members).map(([key, rule]) => [key, rule === null ? undefined : [rule]])));
        } else if (each.kind === "remap" && "shift" in each) {
          const next = (index: number) => [1 + (((table.classes[index]?.[0] ?? 1) - 1 + each.shift) % 3)];
          change(new Map([...table.classOf].map(([key, index]) => [key, next(index)])));
        } else if ("pod" in each) {
          const [pod, own] = [pods[each.pod], held[each.pod]];
          if (pod === undefined || own === undefined) continue;
          if (each.kind === "acknowledge")
            Object.assign(own, { acknowledged: own.outstanding ?? own.acknowledged, outstanding: undefined });
          else own.outstanding ??= { ...shared.rulesFor(pod), version: 1 };
        }
      }
    }),
    budget(4_000),
  );
});

function waitsIn({ waits }: AppPlan): readonly string[] {
  return waits
    .map((wait) => JSON.stringify({ ...wait, namespaces: [...wait.namespaces].sort(), to: [...wait.to].sort() }))
    .sort();
}
