// Watches from the version of a create, a get, a list and a bookmark, of every scope, by eight clients in two subsets. Only a change of what
// their own subset owns may cost them a list. Each watch is compared with direct watches of the API server.
import { afterAll, beforeAll, expect, it } from "vitest";
import { CONFIG_MAPS } from "../../src/kube/client/resources.ts";
import { appOfSubsets } from "../support/app-of-subsets.ts";
import { eventually } from "../support/eventually.ts";
import { goProgram } from "../support/go-build.ts";
import { startGoRetry } from "../support/go-retry.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { FOOS, type Mesh, type MeshPod, startMesh } from "../support/mesh.ts";
import { createProbe, type Probe } from "../support/probe.ts";
import { describeWithKube } from "../support/requirements.ts";
import {
  type Cell,
  CLUSTER_ROLE,
  clusterRoles,
  ENCODINGS,
  type Encoding,
  LABELS,
  ORIGINS,
  type Origin,
  openCell,
  type Scope,
  type Start,
  scopesOf,
  takeVersion,
} from "./watch-versions/cells.ts";
import { type FollowedCell, followCell } from "./watch-versions/followed.ts";
import { type Reference, startReference } from "./watch-versions/reference.ts";
import { birthsAndDeaths, CLUSTER_ROLES, moves, ownWrites, type Traffic } from "./watch-versions/traffic.ts";

const ROAMING = ["roam-0", "roam-1", "roam-2"];
const SUBSETS = {
  default: { own: ["team-0", "team-1"], moving: "team-moving", labels: {}, owned: { side: null } },
  mine: { own: ["mine-0", "mine-1"], moving: "mine-moving", labels: { slice: "mine" }, owned: { side: "mine" } },
} as const;
type Subset = keyof typeof SUBSETS;
const onSide = (side: string) => ({
  labels: { slice: side },
  match: { namespaceSelector: { matchLabels: { side } } },
});
const VIRTUAL_APP = appOfSubsets({ mine: onSide("mine"), left: onSide("left"), right: onSide("right") }, { onLoss: "InPlace" });

const ownerOf = (namespace: string): Subset | "other" => {
  if (namespace.startsWith("mine-")) return "mine";
  return /^(roam|born)-/.test(namespace) ? "other" : "default";
};

/** One client: an encoding and a connection through the proxy of its subset. */
interface Client {
  readonly name: string;
  readonly subset: Subset;
  readonly encoding: Encoding;
  readonly probe: Probe;
}

interface OpenCell {
  readonly client: Client;
  readonly cell: Cell;
}

type Followed = FollowedCell & { readonly client: Client };

function follow({ client, cell }: OpenCell): Followed {
  return Object.assign(followCell(client.probe, cell), { client });
}

function titleOf({ client: { name }, cell: { scope, origin, version } }: OpenCell): string {
  return `${name}: ${scope.name} from a ${origin} (${version})`;
}

describeWithKube("watches from any version", () => {
  let kube: Kube;
  let mesh: Mesh;
  let direct: Probe;
  let reference: Reference;
  const pods = {} as Record<Subset, MeshPod>;
  const clients: Client[] = [];
  let names = 0;

  const createConfigMap = (namespace: string, name: string) =>
    mesh.client.create(CONFIG_MAPS, { metadata: { namespace, name, labels: LABELS } });

  beforeAll(async () => {
    kube = await startKube();
    mesh = await startMesh({ kube });
    direct = createProbe({ url: kube.server, caPem: kube.caPem, token: kube.token, keep: false });
    reference = await startReference(direct, [clusterRoles(), ...scopesOf("any").filter(({ name }) => name !== "one namespace")]);
    // The API server keeps the events of a custom resource from its first request on.
    await mesh.createFoo("default", "first", "x");
    await mesh.apply(VIRTUAL_APP);
    for (const name of ROAMING) await mesh.createNamespace(name, { side: "left" });
    for (const { own, moving, owned } of Object.values(SUBSETS))
      for (const name of [...own, moving]) await mesh.createNamespace(name, owned.side === null ? {} : { side: owned.side });
    for (const subset of ["default", "mine"] as const) {
      pods[subset] = await mesh.addPod({ name: `foo-${subset}`, labels: SUBSETS[subset].labels });
      for (const encoding of Object.keys(ENCODINGS) as Encoding[])
        for (const number of [1, 2])
          clients.push({ name: `${subset}-${encoding}-${number}`, subset, encoding, probe: through(subset) });
    }
    // After the start of the proxies, so that no version is older than they are.
    await mesh.client.create(CLUSTER_ROLES, { metadata: { name: CLUSTER_ROLE } });
    for (const { own, moving } of Object.values(SUBSETS))
      for (const namespace of [...own, moving]) for (const name of ["a", "b"]) await createConfigMap(namespace, name);
  });
  afterAll(async () => {
    reference?.close();
    for (const { probe } of clients) await probe.close();
    await direct?.close();
    await mesh?.stop();
    await kube?.stop();
  });

  const through = (subset: Subset): Probe => {
    const { proxyUrl: url, proxyCaPem: caPem } = pods[subset];
    return createProbe({ url, caPem, token: kube.token, keep: false });
  };
  const scopesFor = (subset: Subset): Scope[] => [
    ...(subset === "default" ? [clusterRoles()] : []),
    ...scopesOf(SUBSETS[subset].own[0]),
  ];
  const versionOf = ({ probe, encoding }: Client, scope: Scope, origin: Origin) =>
    takeVersion(probe, scope, origin, encoding, `made-${names++}`);
  const open = async (client: Client, start: Start): Promise<OpenCell> => ({ client, cell: await openCell(client.probe, start) });
  const openAll = () => ofEachCell(async (client, scope, origin) => open(client, await versionOf(client, scope, origin)));

  /** Calls the function for all cells: side by side for the clients, one after the other for each of them, those without a list first. */
  async function ofEachCell<T>(run: (client: Client, scope: Scope, origin: Origin) => Promise<T>): Promise<T[]> {
    const ofClient = async (client: Client) => {
      const results: T[] = [];
      for (const origin of ORIGINS) for (const scope of scopesFor(client.subset)) results.push(await run(client, scope, origin));
      return results;
    };
    return (await Promise.all(clients.map(ofClient))).flat();
  }

  /** Opens all watches during the traffic, and compares each with the direct watches after it. */
  async function expectExact(traffic: readonly Traffic[], atLeast: number): Promise<void> {
    const writes = [ownWrites(mesh, [...SUBSETS.default.own, ...SUBSETS.mine.own]), ...traffic];
    const all = await openAll();
    await eventually(() => {
      for (const { turns } of writes) expect(turns).toBeGreaterThanOrEqual(atLeast);
    }, 20_000);
    for (const each of writes) await each.stop();
    const problems = () =>
      all.flatMap((open) => {
        const problem = reference.problemOf(open.cell, (namespace) => ownerOf(namespace) === open.client.subset);
        return problem === undefined ? [] : [`${titleOf(open)}: ${problem}`];
      });
    await eventually(() => expect(problems()).toEqual([]), { withinMs: 10_000, everyMs: 250 }).finally(() => {
      for (const { cell } of all) cell.stream.close();
    });
  }

  it("see exactly their own objects' events and go on, while nothing moves", () => expectExact([], 10));

  it("see exactly their own objects' events and go on, with five births and deaths of other namespaces a second", () =>
    expectExact([birthsAndDeaths(mesh, "born-", { side: "left" })], 15));

  it("see exactly their own objects' events and go on, while namespaces move between two other subsets", () =>
    expectExact([moves(mesh, ROAMING, ["left", "right"])], 9));

  it("list again at most once for each change of what their subset owns, and then know what it owns", async () => {
    const living = (await openAll()).map(follow);
    for (const change of ["lost", "gained"] as const) {
      const starts = await ofEachCell(async (client, scope, origin) => ({
        client,
        start: await versionOf(client, scope, origin),
      }));
      for (const { moving, owned } of Object.values(SUBSETS))
        await mesh.labelNamespace(moving, change === "lost" ? { side: "left" } : owned);
      for (const { own, moving } of Object.values(SUBSETS))
        for (const namespace of [own[0], moving]) await createConfigMap(namespace, `after-${change}`);
      await expectAllKnow(living, change);
      // From versions before the change, behind it and behind later lists of the same shape: what others list excuses nobody.
      await ofEachCell((client, scope) => versionOf(client, scope, "list"));
      const resumed = (await Promise.all(starts.map(({ client, start }) => open(client, start)))).map(follow);
      await expectAllKnow(resumed, change);
      for (const { cell } of resumed) cell.stream.close();
    }
    for (const { cell } of living) cell.stream.close();
  });

  async function expectAllKnow(followed: readonly Followed[], change: "lost" | "gained"): Promise<void> {
    await eventually(
      async () => {
        for (const each of followed) await each.goOn();
        for (const each of followed) expectKnown(each, change);
      },
      { withinMs: 15_000, everyMs: 250 },
    );
    const tooMany = followed.flatMap((each) => {
      const allowed = ["clusterroles", "one namespace"].includes(each.cell.scope.name) ? 0 : 1;
      return each.takeLists() > allowed ? [titleOf(each)] : [];
    });
    expect(tooMany, change).toEqual([]);
  }

  function expectKnown(followed: Followed, change: "lost" | "gained"): void {
    const { own, moving } = SUBSETS[followed.client.subset];
    const { scope, version } = followed.cell;
    const title = titleOf(followed);
    const keys = followed.known();
    if (scope.name === "clusterroles") return;
    if (scope.name === "namespaces") {
      expect(keys.has(`/${moving}`), title).toBe(change === "gained");
      return;
    }
    expect([...keys], `${title} at ${version}`).toContain(`${own[0]}/after-${change}`);
    if (scope.name === "one namespace") return;
    const names = change === "lost" ? [] : ["a", "after-gained", "after-lost", "b"];
    expect([...keys].filter((key) => key.startsWith(`${moving}/`)).sort(), title).toEqual(
      names.map((name) => `${moving}/${name}`),
    );
  }

  const RETRY_CASES = (["retry", "until"] as const).flatMap((by) =>
    (["default", "mine"] as const).flatMap((subset) => [
      { by, subset, resource: "configmaps.v1.", everywhere: false },
      { by, subset, resource: "foos.v1.demo.ctrlmesh.io", everywhere: true },
    ]),
  );

  it("client-go's RetryWatcher and UntilWithoutRetry follow an object from its creation to its end", async () => {
    const command = await goProgram("test/operators/go-retry");
    const runs = RETRY_CASES.map(async ({ by, subset, resource, everywhere }) => {
      const namespace = SUBSETS[subset].own[1];
      const name = `${by}-${everywhere ? "everywhere" : "here"}`;
      const program = await startGoRetry({
        command,
        by,
        kubeconfig: pods[subset].adminKubeconfig,
        resource,
        namespace,
        name,
        everywhere,
      });
      const of = resource.startsWith("foos") ? FOOS : CONFIG_MAPS;
      await eventually(() => expect(program.from(), program.output()).toBeDefined(), 20_000);
      await mesh.client.patch(of, { namespace, name }, { type: "merge", body: { metadata: { labels: LABELS } } });
      await mesh.client.delete(of, { namespace, name });
      await eventually(() => {
        const own = program.events().filter(({ key }) => key === `${namespace}/${name}`);
        expect(
          own.map(({ type }) => type),
          program.output(),
        ).toEqual(["MODIFIED", "DELETED"]);
        expect(program.exited, program.output()).toBe(true);
      }, 15_000);
      expect(await program.stop(), program.output()).toBe(0);
    });
    await Promise.all(runs);
  });
});
