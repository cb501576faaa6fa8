// Two of each client program behind the proxies of two subsets, on a real control plane: what each must see and write, and how many lists
// and watches it begins. The tests in client-suite.ts disturb them.
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { expect } from "vitest";
import { CONFIG_MAPS } from "../../../src/kube/client/resources.ts";
import type { KubeObject } from "../../../src/kube/types.ts";
import { type ClientProgram, startClientProgram } from "../client-program.ts";
import { demoVirtualApp } from "../demo-app.ts";
import { eventually } from "../eventually.ts";
import { type Kube, startKube } from "../kube.ts";
import { FOOS, type Mesh, type MeshPod, startMesh } from "../mesh.ts";
import { readMetrics } from "../proxy-metrics.ts";
import type { CatalogEntry } from "./catalog.ts";
import { LOCKS, type LockRecord, recordOf } from "./lock-record.ts";

const RBAC = fileURLToPath(new URL("../../operators/clients-rbac.yaml", import.meta.url));
export const SYSTEM = "foo-system";
const RESOURCES = { configmaps: CONFIG_MAPS, foos: FOOS } as const;

/** One program in one subset. */
export interface Member {
  readonly entry: CatalogEntry;
  readonly subset: "default" | "canary";
  readonly pod: MeshPod;
  readonly program: ClientProgram;
}

export interface ClientWorld {
  readonly kube: Kube;
  readonly mesh: Mesh;
  readonly members: readonly Member[];
  membersOf(entry: CatalogEntry): Member[];
  ownerOf(namespace: string): Member["subset"];
  /** Moves the namespace to the canary in place. */
  moveToCanary(namespace: string): Promise<void>;
  /** Waits until both programs see exactly what they must, and have written all that they must. Both must still run. */
  expectConsistent(entry: CatalogEntry, withinMs?: number): Promise<void>;
  /** The records of all locks that the programs hold, by kind and name. */
  locks(entry: CatalogEntry): Promise<Map<string, LockRecord & { readonly member: Member }>>;
  /** The number of lists and watches that each program has begun since its proxy started. */
  reads(): Promise<ReadonlyMap<Member, number>>;
  stop(): Promise<void>;
}

/** The namespaces team-a and team-b belong to the default subset, and canary-eu to the canary. Each has the Foos one and two. */
export async function startClientWorld(programs: readonly CatalogEntry[]): Promise<ClientWorld> {
  const kube = await startKube();
  const mesh = await startMesh({ kube });
  const members: Member[] = [];
  const canaryNamespaces = new Set(["canary-eu"]);
  const stop = async () => {
    await Promise.all(members.map(({ program }) => program.stop()));
    await mesh.stop();
    await kube.stop();
  };
  await prepare().catch(async (error: unknown) => {
    await stop();
    throw error;
  });

  async function prepare(): Promise<void> {
    await mesh.apply(await readFile(RBAC, "utf8"));
    for (const name of ["team-a", "team-b", "canary-eu"]) {
      await mesh.createNamespace(name);
      for (const foo of ["one", "two"]) await mesh.createFoo(name, foo, "hello");
    }
    for (const { app } of programs) await mesh.apply(demoVirtualApp({ name: app }));
    // One program after the other, since a busy machine needs more than 30 s to start all proxies at once.
    for (const entry of programs) await Promise.all([start(entry, "default", "v1"), start(entry, "canary", "v2")]);
  }

  async function start(entry: CatalogEntry, subset: Member["subset"], version: string): Promise<void> {
    const name = `${entry.app}-${subset}`;
    const pod = await mesh.addPod({ name, labels: { version }, app: entry.app });
    const ofOtherSubset = subset === "canary" ? "team-a" : "canary-eu";
    const env = { KUBECONFIG: pod.kubeconfig, POD_NAME: name, POD_NAMESPACE: SYSTEM, LOCK_NAME: entry.app };
    const program = await startClientProgram({
      name,
      ...(await entry.command()),
      env: { ...env, ALSO_WRITE_TO: ofOtherSubset },
    });
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

  async function expectMemberConsistent(member: Member, withinMs: number): Promise<void> {
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
        for (const key of await sliceOf(member, "foos")) await expectWritten(entry, key, pod.name);
      },
      { withinMs, everyMs: 200 },
    ).catch((cause: unknown) => {
      const outputs = `the program's output ends with\n${program.output().slice(-2_000)}\nthe proxy's output ends with\n${pod.proxy.output().slice(-2_000)}`;
      throw new Error(`${program.name} is not consistent; ${outputs}`, { cause });
    });
  }

  async function expectWritten({ app, writes }: CatalogEntry, foo: string, by: string): Promise<void> {
    const [namespace = "", name = ""] = foo.split("/");
    if (writes.includes("status")) expect((await mesh.foo(namespace, name)).status?.reconciledBy).toBe(by);
    if (!writes.includes("config-map")) return;
    const written = await mesh.client.get(CONFIG_MAPS, { namespace, name: `${name}-by-${app}` });
    expect((written as { data?: { by?: string } }).data?.by).toBe(by);
  }

  async function readsOf({ pod }: Member): Promise<number> {
    const metrics = await readMetrics(pod.healthUrl);
    const count = (verb: string) => metrics.sum("ctrlmesh_proxy_requests_total", { direction: "outbound", verb });
    return count("list") + count("watch");
  }

  return {
    kube,
    mesh,
    members,
    membersOf,
    ownerOf,
    async moveToCanary(namespace) {
      await mesh.labelNamespace(namespace, { "ns-type": "canary-1" });
      canaryNamespaces.add(namespace);
    },
    async expectConsistent(entry, withinMs = 30_000) {
      await Promise.all(membersOf(entry).map((member) => expectMemberConsistent(member, withinMs)));
    },
    async locks(entry) {
      const read = membersOf(entry).flatMap((member) =>
        entry.locks.map(async (lock) => {
          const name = member.subset === "canary" ? `${entry.app}---v2` : entry.app;
          const record = recordOf(await mesh.client.get<KubeObject>(LOCKS[lock], { namespace: SYSTEM, name }));
          return [`${lock} ${name}`, { ...record, member }] as const;
        }),
      );
      return new Map(await Promise.all(read));
    },
    async reads() {
      return new Map(await Promise.all(members.map(async (member) => [member, await readsOf(member)] as const)));
    },
    stop,
  };
}
