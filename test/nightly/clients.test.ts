// Operators on other client libraries, also old ones and ones in other languages, two of each behind the proxies of two subsets. The tests
// check the objects that each program reports, the cluster, the audit log, and the number of requests in the proxies' metrics.
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import { stringify } from "yaml";
import type { Resource } from "../../src/kube/client/resource.ts";
import { CONFIG_MAPS, LEASES } from "../../src/kube/client/resources.ts";
import type { KubeObject } from "../../src/kube/types.ts";
import { type CatalogEntry, clientCatalog } from "../support/client-catalog.ts";
import { type ClientProgram, startClientProgram } from "../support/client-program.ts";
import { demoVirtualApp } from "../support/demo-app.ts";
import { eventually } from "../support/eventually.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { kubectl } from "../support/kubectl.ts";
import { FOOS, type Mesh, type MeshPod, startMesh } from "../support/mesh.ts";
import { readMetrics } from "../support/proxy-metrics.ts";
import { describeWithKube, pythonOrSkip } from "../support/requirements.ts";

const RBAC = fileURLToPath(new URL("../operators/clients-rbac.yaml", import.meta.url));
const SYSTEM = "foo-system";
const ENDPOINTS: Resource = { group: "", version: "v1", resource: "endpoints", kind: "Endpoints", namespaced: true };
const RESOURCES = { configmaps: CONFIG_MAPS, foos: FOOS } as const;
const LOCKS = { configmaps: CONFIG_MAPS, endpoints: ENDPOINTS, leases: LEASES } as const;

/** One program in one subset. */
interface Member {
  readonly entry: CatalogEntry;
  readonly subset: "default" | "canary";
  readonly pod: MeshPod;
  readonly program: ClientProgram;
}

const programs = clientCatalog(await pythonOrSkip("the Python clients through two subsets"));
const each = programs.map((entry) => [entry.title, entry] as const);

describeWithKube("programs on other client libraries in two subsets", () => {
  let kube: Kube;
  let mesh: Mesh;
  const members: Member[] = [];
  const canaryNamespaces = new Set(["canary-eu"]);

  beforeAll(async () => {
    kube = await startKube();
    mesh = await startMesh({ kube });
    await mesh.apply(await readFile(RBAC, "utf8"));
    for (const name of ["team-a", "team-b", "canary-eu"]) {
      await mesh.createNamespace(name);
      for (const foo of ["one", "two"]) await mesh.createFoo(name, foo, "hello");
    }
    for (const { app } of programs) await mesh.apply(demoVirtualApp({ name: app }));
    await Promise.all(
      programs.flatMap((entry) => [start(entry, "default", { version: "v1" }), start(entry, "canary", { version: "v2" })]),
    );
  });
  afterAll(async () => {
    await Promise.all(members.map(({ program }) => program.stop()));
    await mesh?.stop();
    await kube?.stop();
  });

  async function start(entry: CatalogEntry, subset: Member["subset"], labels: Record<string, string>): Promise<void> {
    const name = `${entry.app}-${subset}`;
    const pod = await mesh.addPod({ name, labels, app: entry.app });
    const env = { KUBECONFIG: pod.kubeconfig, POD_NAME: name, POD_NAMESPACE: SYSTEM, LOCK_NAME: entry.app };
    const program = await startClientProgram({ name, ...(await entry.command()), env });
    members.push({ entry, subset, pod, program });
  }

  const membersOf = (entry: CatalogEntry) => members.filter((member) => member.entry === entry);
  const ownerOf = (namespace: string): Member["subset"] => (canaryNamespaces.has(namespace) ? "canary" : "default");

  /** The objects of a resource that a program must see: all except the other subset's objects and lock. */
  async function sliceOf({ entry, subset }: Member, resource: keyof typeof RESOURCES): Promise<string[]> {
    const { items } = await mesh.client.list<KubeObject>(RESOURCES[resource]);
    const otherLock = `${SYSTEM}/${entry.app}---v2`;
    return items
      .map(({ metadata }) => metadata)
      .filter(({ namespace = "" }) => ownerOf(namespace) === subset)
      .map(({ namespace, name }) => `${namespace}/${name}`)
      .filter((key) => key !== otherLock)
      .sort();
  }

  /** Waits until the program sees exactly its slice and has written its objects. The program must still run. */
  async function expectConsistent(member: Member, withinMs: number): Promise<void> {
    const { entry, pod, program } = member;
    await eventually(
      async () => {
        expect(program.exited, "the program has ended").toBe(false);
        expect(program.leading).toBe(entry.locks.length > 0);
        for (const resource of ["foos", "configmaps"] as const) {
          const expected = await sliceOf(member, resource);
          if (entry.sees === "cache") expect(program.view(resource)).toEqual(expected);
          else expect(program.view(resource)).toEqual(expect.arrayContaining(expected));
        }
        for (const key of await sliceOf(member, "foos")) expect(await writtenBy(entry, key)).toBe(pod.name);
      },
      { withinMs, everyMs: 200 },
    ).catch((cause: unknown) => {
      const outputs = `the program's output ends with\n${program.output().slice(-2_000)}\nthe proxy's output ends with\n${pod.proxy.output().slice(-2_000)}`;
      throw new Error(`${program.name} is not consistent; ${outputs}`, { cause });
    });
  }
  async function writtenBy({ app }: CatalogEntry, foo: string): Promise<string | undefined> {
    const [namespace = "", name = ""] = foo.split("/");
    if (app === "kopf") return (await mesh.foo(namespace, name)).status?.reconciledBy;
    const written = await mesh.client.get(CONFIG_MAPS, { namespace, name: `${name}-by-${app}` });
    return (written as { data?: { by?: string } }).data?.by;
  }
  const expectAllConsistent = (entry: CatalogEntry, withinMs = 30_000) =>
    Promise.all(membersOf(entry).map((member) => expectConsistent(member, withinMs)));

  /** The number of lists and watches that the program has begun since its proxy started. */
  async function reads({ pod }: Member): Promise<number> {
    const metrics = await readMetrics(pod.healthUrl);
    const count = (verb: string) => metrics.sum("ctrlmesh_proxy_requests_total", { direction: "outbound", verb });
    return count("list") + count("watch");
  }

  it.each(each)("%s: each subset sees exactly its own objects and writes to its namespaces", async (_, entry) => {
    await expectAllConsistent(entry);
    for (const { program, subset } of membersOf(entry)) {
      const ofOtherSubset = ({ key }: { key: string }) =>
        ownerOf(key.split("/")[0] ?? "") !== subset || key.includes(`${entry.app}---`);
      expect(program.sightings.filter(ofOtherSubset)).toEqual([]);
    }
  });

  it.each(each.filter(([, { locks }]) => locks.length > 0))("%s: both subsets lead, each with its own lock", async (_, entry) => {
    for (const { subset, pod } of membersOf(entry)) {
      const name = subset === "canary" ? `${entry.app}---v2` : entry.app;
      for (const lock of entry.locks) {
        const holder = recordOf(await mesh.client.get(LOCKS[lock], { namespace: SYSTEM, name })).holderIdentity;
        expect(holder, `${lock} ${name}`).toMatch(new RegExp(`^${pod.name}(_|$)`));
      }
    }
  });

  it("no program lists or watches again while nothing happens", async () => {
    const before = await readsOfAll();
    await pass(5_000);
    // At most one new watch: @kubernetes/client-node ends a watch that was silent for 30 s.
    await expectFewReads(1, before);
  });

  it("a relabelled namespace moves to the other subset in every program, with few lists and watches", async () => {
    const before = await readsOfAll();
    await mesh.labelNamespace("team-b", { "ns-type": "canary-1" });
    canaryNamespaces.add("team-b");
    await mesh.createFoo("team-b", "after", "hello");
    await Promise.all(programs.map((entry) => expectAllConsistent(entry)));
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
    for (const [kind, spec] of Object.entries(policies)) {
      const metadata = { name: "all", namespace: SYSTEM };
      await mesh.apply(
        stringify({ apiVersion: "ctrlmesh.kusionstack.io/v1alpha1", kind, metadata, spec: { selector, ...spec } }),
      );
      await kubectl(kube.kubeconfig, ["wait", kind, "all", "-n", SYSTEM, "--for=condition=Synced", "--timeout=20s"]);
    }
    const locks = async () => {
      const leading = members.flatMap(({ entry, subset }) =>
        entry.locks.map((lock) => ({ lock, name: subset === "canary" ? `${entry.app}---v2` : entry.app })),
      );
      const read = leading.map(async ({ lock, name }) => {
        const { holderIdentity, renewTime, leaderTransitions, leaseTransitions } = recordOf(
          await mesh.client.get(LOCKS[lock], { namespace: SYSTEM, name }),
        );
        const renewedMs = Date.parse(renewTime ?? "");
        return [`${lock} ${name}`, { holderIdentity, transitions: leaseTransitions ?? leaderTransitions, renewedMs }] as const;
      });
      return new Map(await Promise.all(read));
    };
    const before = await locks();
    expect(before.size).toBeGreaterThan(4);
    // The leaders lead for 4 s without a renewal.
    await eventually(async () => {
      for (const [lock, { renewedMs, ...same }] of await locks()) {
        const { renewedMs: then = 0, ...leader } = before.get(lock) ?? {};
        expect([lock, same]).toEqual([lock, leader]);
        expect([lock, renewedMs - then > 5_000]).toEqual([lock, true]);
      }
    }, 15_000);
    for (const { program, entry } of members)
      expect([program.name, program.leading]).toEqual([program.name, entry.locks.length > 0]);
    await kubectl(kube.kubeconfig, ["delete", "circuitbreaker/all", "faultinjection/all", "-n", SYSTEM]);
    await Promise.all(programs.map((entry) => expectAllConsistent(entry)));
  });

  it("every program recovers from a restart of its proxy", async () => {
    await Promise.all(members.map(({ pod }) => pod.restartProxy()));
    await createFooEverywhere("proxy-back");
    await Promise.all(programs.map((entry) => expectAllConsistent(entry, 40_000)));
    await expectFewReads(6, new Map());
  });

  it("every program recovers from a restart of the API server", async () => {
    const before = await readsOfAll();
    await kube.crash();
    await kube.restart();
    await createFooEverywhere("api-server-back");
    await Promise.all(programs.map((entry) => expectAllConsistent(entry, 60_000)));
    await expectFewReads(15, before);
  });

  it("no program ever wrote outside of its subset's namespaces", () => {
    for (const { entry, subset, pod } of members) {
      const writesOutside = mesh
        .podWrites()
        .filter((write) => write.pod === pod.name && write.code < 400)
        .filter(({ namespace, resource, name }) => {
          if (namespace === SYSTEM && resource === "events") return false; // of elections
          if (namespace === SYSTEM) return (name === `${entry.app}---v2`) !== (subset === "canary");
          return namespace !== "team-b" && ownerOf(namespace) !== subset;
        });
      expect(writesOutside).toEqual([]);
    }
  });

  async function createFooEverywhere(name: string): Promise<void> {
    for (const namespace of ["team-a", "team-b", "canary-eu"]) {
      await eventually(() => mesh.createFoo(namespace, name, "hello"), { withinMs: 30_000, everyMs: 200 });
    }
  }
  const readsOfAll = async () =>
    new Map(await Promise.all(members.map(async (member) => [member, await reads(member)] as const)));
  /** Each informer has made at most this many lists and watches since `before`. */
  async function expectFewReads(perInformer: number, before: ReadonlyMap<Member, number>): Promise<void> {
    const now = await readsOfAll();
    const tooMany = members.flatMap((member) => {
      const count = (now.get(member) ?? 0) - (before.get(member) ?? 0);
      return count > perInformer * member.entry.informers ? [`${member.program.name}: ${count} lists and watches`] : [];
    });
    expect(tooMany).toEqual([]);
  }
  /** The subsets of the audit log's writes in the namespace, in order: "default canary ". */
  function subsetsThatWrote(entry: CatalogEntry, namespace: string): string {
    const subsets = new Map(membersOf(entry).map(({ pod, subset }) => [pod.name, subset]));
    const writes = mesh.podWrites().filter((write) => write.namespace === namespace && write.code < 400);
    return writes.map(({ pod }) => (subsets.has(pod) ? `${subsets.get(pod)} ` : "")).join("");
  }
});

interface LockRecord {
  readonly holderIdentity?: string;
  readonly renewTime?: string;
  readonly leaderTransitions?: number;
  readonly leaseTransitions?: number;
}

/** The record of a lock of any kind. */
function recordOf(lock: KubeObject): LockRecord {
  const record = lock.metadata.annotations?.["control-plane.alpha.kubernetes.io/leader"];
  return record === undefined ? ((lock as { spec?: LockRecord }).spec ?? {}) : JSON.parse(record);
}

/** Lets time pass. No condition can show that nothing happens. */
const pass = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
