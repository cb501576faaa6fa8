// Model test of the handover: any order of route changes, deliveries, acknowledgements, pod births, deaths and changes of
// subset, beside pods that have no proxy. At no step may a subset hold an object (resource, namespace, labels) that another one
// holds, unless both share it; nothing stops that nothing is about; once the world is quiet it converges.
import fc from "fast-check";
import { expect, it } from "vitest";
import type { Claim } from "../../src/manager/handover/claims.ts";
import { planFences, withFences } from "../../src/manager/handover/plan-fences.ts";
import { matchesResource, type Owner, ownersOf, type RouteRule, type RouteTable } from "../../src/route/table.ts";
import { group, limit, objectLimit, objects, subset } from "../support/route-table.ts";

const NAMESPACES = ["a", "b", "c", "d"];
const SUBSETS = ["", "canary", "beta"];
const RESOURCES = ["pods", "configmaps", "secrets"];
const LABELS: readonly Record<string, string>[] = [{}, { t: "x" }, { t: "y" }, { u: "" }, { t: "x", u: "" }];
const MAPS = group("", "configmaps");
const SECRETS = group("", "secrets");
const ALL = group("*");

interface Pod {
  readonly name: string;
  /** It runs without a proxy: it does as the default subset does, on everything. */
  readonly bare?: boolean;
  subset: string;
  /** What the proxy enforces. */
  enforced: { subset: string; table: RouteTable } | undefined;
  /** Sent, oldest first, not yet taken by the proxy; acknowledged when taken. */
  sent: { subset: string; table: RouteTable }[];
  /** The pod has reported to the manager that leads now. */
  reported: boolean;
}

const rules = fc.array(
  fc.oneof(
    fc.constantFrom("canary", "beta").map((name): RouteRule => subset(name)),
    fc.constantFrom("canary", "beta").map((name): RouteRule => subset(name, MAPS)),
    fc.constant(limit()),
    fc
      .tuple(
        fc.constantFrom("canary", "beta"),
        fc.constantFrom("t=x", "t!=x", "u", "!u"),
        fc.constantFrom([MAPS], [MAPS, SECRETS], [MAPS], [group("", "configmaps", "secrets")], [ALL]),
      )
      .map(([name, term, resources]) => objects(name, term, ...resources)),
    fc.constant(objectLimit("t", MAPS)),
  ),
  { maxLength: 3 },
);
const publics = fc.constantFrom([], [], [], [MAPS], [SECRETS], [group("", "secrets", "configmaps")], [group("")]);
const tables = fc.tuple(rules, publics).chain(([list, publicResources]) =>
  fc
    .array(fc.subarray(list.map((_, index) => index)), { minLength: NAMESPACES.length, maxLength: NAMESPACES.length })
    .chain((classes) =>
      fc.subarray(NAMESPACES, { minLength: 1 }).map(
        (known): RouteTable => ({
          rules: list,
          // Rules on labels contain no namespace.
          classes: classes.map((row) => row.filter((index) => list[index]?.kind === "limit" || list[index]?.kind === "subset")),
          classOf: new Map(known.map((namespace) => [namespace, NAMESPACES.indexOf(namespace)])),
          publicResources,
          fenced: new Set(),
        }),
      ),
    ),
);
const BARE = 5;
const of = <K extends string>(kind: K) => fc.record({ kind: fc.constant(kind), pod: fc.nat(5) });
const ofSubset = <K extends string>(kind: K) =>
  fc.record({ kind: fc.constant(kind), pod: fc.nat(5), subset: fc.constantFrom(...SUBSETS) });
const steps = fc.array(
  fc.oneof(
    { weight: 2, arbitrary: tables.map((table) => ({ kind: "spec" as const, table })) },
    { weight: 6, arbitrary: of("deliver") },
    { weight: 3, arbitrary: of("reports") },
    { weight: 1, arbitrary: ofSubset("born") },
    { weight: 1, arbitrary: ofSubset("moves") },
    { weight: 1, arbitrary: of("dies") },
    { weight: 1, arbitrary: fc.constant({ kind: "restart" as const }) },
  ),
  { minLength: 10, maxLength: 60 },
);

it("never lets two subsets hold the same resource in a namespace, and converges when quiet", () => {
  let count = 0;
  fc.assert(
    fc.property(tables, steps, fc.boolean(), (first, script, isBesideBare) => {
      const pods = new Map<number, Pod>();
      // From before the app was divided: one that comes later nobody could keep from anything.
      if (isBesideBare) pods.set(BARE, { name: "bare", bare: true, subset: "", enforced: undefined, sent: [], reported: true });
      let wished = first;
      for (const step of script) {
        if (step.kind === "spec") wished = withBirths(wished, step.table);
        else if (step.kind === "restart") for (const pod of pods.values()) restart(pod);
        else if (step.kind === "reports") {
          const pod = pods.get(step.pod);
          if (pod) pod.reported = true;
        } else if (step.kind === "dies") pods.delete(step.pod);
        else if (step.kind === "born" && pods.get(step.pod)?.bare) continue;
        else if (step.kind === "born")
          pods.set(step.pod, { name: `p${step.pod}`, subset: step.subset, enforced: undefined, sent: [], reported: true });
        else if (step.kind === "moves") {
          const pod = pods.get(step.pod);
          if (pod && !pod.bare) pod.subset = step.subset;
        } else deliver(pods.get(step.pod));
        reconcile(wished, pods);
        expectOneOwner(pods);
        count++;
      }
      pods.delete(BARE);
      for (let round = 0; round < 6; round++) {
        for (const pod of pods.values()) {
          pod.reported = true;
          while (pod.sent.length > 0) deliver(pod);
        }
        reconcile(wished, pods);
        expectOneOwner(pods);
      }
      for (const pod of pods.values()) {
        expect(pod.enforced).toEqual({ subset: pod.subset, table: wished });
      }
    }),
    { numRuns: 3_000, interruptAfterTimeLimit: 12_000 },
  );
  expect(count).toBeGreaterThan(5_000);
});

// Namespaces are born and stay. (One that is deleted and made anew while a proxy is cut off: docs/design.md, limitations.)
function withBirths(before: RouteTable, next: RouteTable): RouteTable {
  const known = new Set([...before.classOf.keys(), ...next.classOf.keys()]);
  return { ...next, classOf: new Map([...known].map((namespace) => [namespace, NAMESPACES.indexOf(namespace)])) };
}

// The manager forgets everything, the streams break, and what was on its way is lost.
function restart(pod: Pod): void {
  pod.sent = [];
  pod.reported = false;
}

function deliver(pod: Pod | undefined): void {
  const next = pod?.sent.shift();
  if (pod && next) pod.enforced = next;
}

function reconcile(wished: RouteTable, pods: ReadonlyMap<number, Pod>): void {
  const claims = [...pods.values()].flatMap(({ name, bare, enforced, sent, reported }): Claim[] => {
    if (bare) return [{ kind: "everything", pod: name, subset: "" }];
    if (!reported) return [{ kind: "everything", pod: name, subset: undefined }];
    const held = enforced === undefined ? [] : [{ ...enforced, enforced: true }];
    return [...held, ...sent.map((row) => ({ ...row, enforced: false }))].map((row) => ({ kind: "table", pod: name, ...row }));
  });
  const plan = planFences(wished, SUBSETS, claims);
  for (const subset of SUBSETS) expectNoNeedlessStop(wished, withFences(wished, plan, subset), subset, claims);
  for (const pod of pods.values()) {
    if (!pod.reported || pod.bare) continue;
    const table = withFences(wished, plan, pod.subset);
    const last = pod.sent.at(-1) ?? pod.enforced;
    if (JSON.stringify(digest(last?.table)) === JSON.stringify(digest(table)) && last?.subset === pod.subset) continue;
    pod.sent.push({ subset: pod.subset, table });
  }
}

function digest(table: RouteTable | undefined): unknown {
  return table && [table.rules, table.publicResources, table.classes, [...table.classOf], [...table.fenced].sort()];
}

// What no rule on labels names and what is not public has fences of namespaces alone; and who has something already is told that
// it moves, and is not shown nothing.
function expectNoNeedlessStop(wished: RouteTable, next: RouteTable, subset: string, claims: readonly Claim[]): void {
  const tables = [wished, ...claims.flatMap((claim) => (claim.kind === "table" ? [claim.table] : []))];
  const own = claims.flatMap((claim) =>
    claim.kind === "table" && claim.enforced && claim.subset === subset && !hasUnreportedFence(claim.table) ? [claim.table] : [],
  );
  if (own.length === 0) return;
  if (hasUnreportedFence(next)) throw new Error(`"${subset}" has something, and is to be shown nothing`);
  for (const resource of RESOURCES) {
    const isNamed = ({ rules, publicResources }: RouteTable) =>
      matchesResource(publicResources, "", resource) ||
      rules.some(({ kind, resources }) => kind === "objects" && matchesResource(resources, "", resource));
    const wasMoving = own.some((table) => ownersOf(table, "", resource).isMoving);
    if (!tables.some(isNamed) && !wasMoving && ownersOf(next, "", resource).isMoving)
      throw new Error(`${resource} move for "${subset}" and nothing is about them`);
  }
}

function hasUnreportedFence({ rules }: RouteTable): boolean {
  return rules.some((rule) => rule.kind === "fence" && rule.because === "unreported");
}

function expectOneOwner(pods: ReadonlyMap<number, Pod>): void {
  for (const resource of RESOURCES) {
    const owners = [...pods.values()].flatMap(({ enforced, bare }) => {
      if (bare) return [{ subset: "", ownerOf: (): Owner => ({ kind: "everyone" }) }];
      return enforced === undefined ? [] : [{ subset: enforced.subset, ownerOf: ownersOf(enforced.table, "", resource).ownerOf }];
    });
    for (const namespace of ["", ...NAMESPACES, "unheard-of"]) {
      for (const labels of LABELS) {
        const holders = new Set<string>();
        const sharers = new Set<string>();
        for (const { subset: name, ownerOf } of owners) {
          const owner = ownerOf(namespace, labels);
          if (owner.kind === "everyone") sharers.add(name);
          if (owner.kind === "subset" && owner.subset === name) holders.add(name);
        }
        if (holders.size > 0 && new Set([...holders, ...sharers]).size > 1)
          throw new Error(
            `${resource} ${JSON.stringify(labels)} in "${namespace}": held by ${JSON.stringify([...holders])}, shared by ${JSON.stringify([...sharers])}`,
          );
      }
    }
  }
}
