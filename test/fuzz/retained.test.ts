// What the manager says a pod goes on showing against what the proxy makes of it: over any sequence of tables, changes of subset
// and fences, no namespace that a pod has seen is taken from its informers as long as it lives, and what it may write is never
// more than its subset owns.
import fc from "fast-check";
import { expect, it } from "vitest";
import { retainedBetween } from "../../src/mesh/handover/retained.ts";
import { movesBetween } from "../../src/mesh/moves/moves-between.ts";
import { enforced } from "../../src/mesh/ownership/enforced.ts";
import { ownsUnknown } from "../../src/mesh/ownership/plan-query.ts";
import { readViewOf, type Snapshot } from "../../src/mesh/ownership/snapshot.ts";
import { matchesResource, type RouteRule, type RouteTable } from "../../src/mesh/ownership/table.ts";
import { budget } from "../support/fuzz.ts";
import { fence, group, limit, objects, snapshot, subset, table, unreportedFence } from "../support/route-table.ts";

const NAMES = ["a", "b", "c", "d"];
const RESOURCES = ["pods", "configmaps", "secrets", "services"];
const RULES: readonly RouteRule[] = [
  limit(),
  limit(group("", "pods")),
  subset("blue"),
  subset("green", group("", "configmaps", "services")),
  subset("blue", group("", "pods")),
  objects("green", "tier=gold", group("", "secrets")),
];

const step = fc.record({
  own: fc.constantFrom("", "blue", "green"),
  inForce: fc.subarray(RULES.map((_, index) => index)),
  members: fc.array(fc.subarray(RULES.map((_, index) => index)), { minLength: NAMES.length, maxLength: NAMES.length }),
  fenced: fc.subarray(NAMES, { maxLength: 2 }),
  isPublic: fc.boolean(),
  fence: fc.constantFrom("none", "none", "none", "moves", "unreported"),
});
type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never;

// Fences stand behind the other rules, as the manager puts them.
function tableOf({ inForce, members, fenced, isPublic, fence: kind }: Step): RouteTable {
  const rows = NAMES.map((name, index) => [name, inForce.flatMap((rule, at) => (members[index]?.includes(rule) ? [at] : []))]);
  const fences = { none: [], moves: [fence(group("", "services"))], unreported: [unreportedFence()] }[kind] ?? [];
  const rules = [...inForce.flatMap((rule) => RULES[rule] ?? []), ...fences];
  return table(rules, Object.fromEntries(rows), { fenced, sharedResources: isPublic ? [group("", "services")] : [] });
}

function movesWhole({ rules, sharedResources }: RouteTable, resource: string): boolean {
  const moved = rules.filter((rule) => rule.kind === "objects" || (rule.kind === "fence" && rule.because === "moves"));
  return matchesResource([...sharedResources, ...moved.flatMap(({ resources }) => resources)], "", resource);
}

it("a pod shows what it has shown, and writes what it owns, whatever its tables say", () => {
  fc.assert(
    fc.property(fc.array(step, { minLength: 2, maxLength: 6 }), (steps) => {
      let before: Snapshot | undefined;
      for (const next of steps) {
        const desired = tableOf(next);
        const retained = before === undefined ? [] : retainedBetween(before, { subset: next.own, table: desired });
        const now = snapshot(retained.length === 0 ? desired : { ...desired, retained }, { subset: next.own });
        const [old, current, bare] = [
          before && enforced(before),
          enforced(now),
          enforced(snapshot(desired, { subset: next.own })),
        ];
        for (const resource of RESOURCES) {
          const view = current.view("", resource);
          for (const name of ["", ...NAMES, "new"]) {
            expect(view.ownershipOf(name)).toBe(bare.view("", resource).ownershipOf(name));
          }
          if (old === undefined || before === undefined) continue;
          if (movesWhole(before.table, resource) || movesWhole(desired, resource)) continue;
          const [had, has] = [readViewOf(old.view("", resource)), readViewOf(view)];
          for (const name of ["", ...NAMES])
            if (had.ownershipOf(name) === "own") expect([name, has.ownershipOf(name)]).toEqual([name, "own"]);
          // Namespaces without a name were shown with all others, as long as there was no rule.
          if (ownsUnknown(had) || ownsUnknown(has)) continue;
          const { isEverything, moved = [], departed } = movesBetween(old, current).of({ group: "", resource });
          const lost = [...moved.filter((name) => had.ownershipOf(name) === "own"), ...departed];
          expect([isEverything && had.ownershipOf("") === has.ownershipOf(""), lost]).toEqual([false, []]);
        }
        before = now;
      }
    }),
    budget(),
  );
});
