// The tests of client programs, two of each behind the proxies of two subsets. They check the objects that each program reports, the
// cluster, the audit log, and the number of requests in the proxies' metrics.
import { afterAll, beforeAll, expect, it } from "vitest";
import { stringify } from "yaml";
import { eventually } from "../eventually.ts";
import { kubectl } from "../kubectl.ts";
import { FOOS } from "../mesh.ts";
import type { CatalogEntry } from "./catalog.ts";
import { type ClientWorld, type Member, SYSTEM, startClientWorld } from "./client-world.ts";

/** How long the programs may take to recover. After some failures kube-rs and fabric8 wait for 30 s, and the others for less. */
const RECOVERY_MS = 60_000;

/** Defines the tests in the current suite. */
export function clientSuite(programs: readonly CatalogEntry[]): void {
  let world: ClientWorld;
  const each = programs.map((entry) => [entry.title, entry] as const);

  beforeAll(async () => {
    world = await startClientWorld(programs);
  });
  afterAll(() => world?.stop());

  const expectAllConsistent = (withinMs?: number) =>
    Promise.all(programs.map((entry) => world.expectConsistent(entry, withinMs)));
  async function createFooEverywhere(name: string): Promise<void> {
    for (const namespace of ["team-a", "team-b", "canary-eu"])
      await eventually(() => world.mesh.createFoo(namespace, name, "hello"), { withinMs: 30_000, everyMs: 200 });
  }
  /** Each informer has made at most this many lists and watches since `before`. */
  async function expectFewReads(perInformer: number, before: ReadonlyMap<Member, number>): Promise<void> {
    const now = await world.reads();
    const tooMany = world.members.flatMap((member) => {
      const count = (now.get(member) ?? 0) - (before.get(member) ?? 0);
      return count > perInformer * member.entry.informers ? [`${member.program.name}: ${count} lists and watches`] : [];
    });
    expect(tooMany).toEqual([]);
  }
  /** The subsets of the audit log's writes in the namespace, in order: "default canary ". */
  function subsetsThatWrote(entry: CatalogEntry, namespace: string): string {
    const subsets = new Map(world.membersOf(entry).map(({ pod, subset }) => [pod.name, subset]));
    const writes = world.mesh.podWrites().filter((write) => write.namespace === namespace && write.code < 400);
    return writes.map(({ pod }) => (subsets.has(pod) ? `${subsets.get(pod)} ` : "")).join("");
  }

  it.each(each)("%s: each subset sees exactly its own objects and writes to its namespaces", async (_, entry) => {
    await world.expectConsistent(entry);
    for (const { program, subset } of world.membersOf(entry)) {
      const ofOtherSubset = ({ key }: { key: string }) =>
        world.ownerOf(key.split("/")[0] ?? "") !== subset || key.includes(`${entry.app}---`);
      expect(program.sightings.filter(ofOtherSubset)).toEqual([]);
    }
  });

  const electors = each.filter(([, { locks }]) => locks.length > 0);
  it.each(electors)("%s: both subsets lead, each with its own lock", async (_, entry) => {
    for (const [lock, { holderIdentity, member }] of await world.locks(entry))
      expect(holderIdentity, lock).toMatch(new RegExp(`^${member.pod.name}(_|$)`));
  });

  const trespassers = each.filter(([, { writes }]) => writes.includes("elsewhere"));
  it.each(trespassers)("%s: a write into a namespace of the other subset is refused with the reason", async (_, entry) => {
    for (const { program, subset, pod } of world.membersOf(entry)) {
      const namespace = subset === "canary" ? "team-a" : "canary-eu";
      await eventually(() => expect(program.answers).not.toEqual([]));
      expect(program.answers).toEqual([{ wroteTo: namespace, code: 403, message: expect.stringContaining("ctrlmesh: ") }]);
      expect(world.mesh.podWrites().filter((write) => write.pod === pod.name && write.namespace === namespace)).toEqual([]);
    }
  });

  it.each(each)("%s: each subset is told of a deletion within 5 s", async (_, entry) => {
    for (const { program, subset } of world.membersOf(entry)) {
      const namespace = subset === "canary" ? "canary-eu" : "team-a";
      const key = `${namespace}/of-${entry.app}`;
      await world.mesh.createFoo(namespace, `of-${entry.app}`, "hello");
      await eventually(() => expect(program.view("foos")).toContain(key), 5_000);
      await world.mesh.client.delete(FOOS, { namespace, name: `of-${entry.app}` });
      await eventually(() => expect(program.view("foos")).not.toContain(key), 5_000);
    }
  });

  it("no program lists or watches again while nothing happens", async () => {
    await expectAllConsistent();
    const before = await world.reads();
    await pass(5_000);
    // At most one new watch: @kubernetes/client-node ends a watch that was silent for 30 s.
    await expectFewReads(1, before);
  });

  it("a relabelled namespace moves to the other subset in every program, with few lists and watches", async () => {
    const before = await world.reads();
    await world.moveToCanary("team-b");
    await world.mesh.createFoo("team-b", "after", "hello");
    await expectAllConsistent();
    // Each informer lists again once and then watches. The Python client first tries its old version once more.
    await expectFewReads(4, before);
    for (const entry of programs) expect(subsetsThatWrote(entry, "team-b")).toMatch(/^(default )+(canary )+$/);
  });

  it("every leader stays, whatever the kind of its lock, while policies refuse and abort everything else", async () => {
    const rules = [{ apiGroups: ["*"], resources: ["*"], verbs: ["*"], namespaces: ["*"] }];
    const selector = { matchExpressions: [{ key: "version", operator: "In", values: ["v1", "v2"] }] };
    const policies = {
      CircuitBreaker: { rateLimitings: [{ name: "all", resourceRules: rules, triggerPolicy: "ForceOpened" }] },
      FaultInjection: { httpFault: [{ name: "all", abort: { httpStatus: 500, percent: "100" } }] },
    };
    const { mesh, kube } = world;
    for (const [kind, spec] of Object.entries(policies)) {
      const metadata = { name: "all", namespace: SYSTEM };
      await mesh.apply(
        stringify({ apiVersion: "ctrlmesh.kusionstack.io/v1alpha1", kind, metadata, spec: { selector, ...spec } }),
      );
      await kubectl(kube.kubeconfig, ["wait", kind, "all", "-n", SYSTEM, "--for=condition=Synced", "--timeout=20s"]);
    }
    const locks = async () => new Map((await Promise.all(programs.map(world.locks))).flatMap((each) => [...each]));
    const before = await locks();
    expect(before.size).toBe(2 * programs.flatMap((entry) => entry.locks).length);
    // The leaders lead for 4 s without a renewal.
    await eventually(async () => {
      for (const [lock, now] of await locks()) {
        const then = before.get(lock);
        expect([lock, holderOf(now)]).toEqual([lock, holderOf(then)]);
        const renewedMs = Date.parse(now.renewTime ?? "") - Date.parse(then?.renewTime ?? "");
        expect([lock, renewedMs > 5_000]).toEqual([lock, true]);
      }
    }, 15_000);
    for (const { program, entry } of world.members)
      expect([program.name, program.leading]).toEqual([program.name, entry.locks.length > 0]);
    await kubectl(kube.kubeconfig, ["delete", "circuitbreaker/all", "faultinjection/all", "-n", SYSTEM]);
    await expectAllConsistent();
  });

  it("every program recovers from a restart of its proxy", async () => {
    await Promise.all(world.members.map(({ pod }) => pod.restartProxy()));
    await createFooEverywhere("proxy-back");
    await expectAllConsistent(RECOVERY_MS);
    await expectFewReads(6, new Map());
  });

  it("every program recovers from a restart of the API server", async () => {
    const before = await world.reads();
    await world.kube.crash();
    await world.kube.restart();
    await createFooEverywhere("api-server-back");
    await expectAllConsistent(RECOVERY_MS);
    await expectFewReads(15, before);
  });

  it("no program ever wrote outside of its subset's namespaces", () => {
    for (const { entry, subset, pod } of world.members) {
      const writesOutside = world.mesh
        .podWrites()
        .filter((write) => write.pod === pod.name && write.code < 400)
        .filter(({ namespace, resource, name }) => {
          if (namespace === SYSTEM && resource === "events") return false; // of elections
          if (namespace === SYSTEM) return (name === `${entry.app}---v2`) !== (subset === "canary");
          return namespace !== "team-b" && world.ownerOf(namespace) !== subset;
        });
      expect(writesOutside).toEqual([]);
    }
  });
}

type Lock = Awaited<ReturnType<ClientWorld["locks"]>> extends Map<string, infer Record> ? Record : never;
/** Who holds a lock, since how many leaders. */
const holderOf = (lock: Lock | undefined) => [lock?.holderIdentity, lock?.leaseTransitions ?? lock?.leaderTransitions];

/** Lets time pass. No condition can show that nothing happens. */
const pass = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
