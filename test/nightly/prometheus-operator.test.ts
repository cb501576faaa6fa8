// prometheus-operator, built unmodified from its module, in two subsets of forty namespaces with a Prometheus each, while ten namespaces
// move in place there and back. It has some twenty informers and no leader election, and knows nothing of a mesh.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Resource } from "../../src/kube/client/resource.ts";
import type { KubeObject } from "../../src/kube/types.ts";
import { moveTo, regexApp } from "../handover/regex-app.ts";
import { type Child, startChild } from "../support/child-process.ts";
import { eventually } from "../support/eventually.ts";
import { goModuleFolder, goProgram } from "../support/go-build.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { kubectl } from "../support/kubectl.ts";
import { type Mesh, startMesh } from "../support/mesh.ts";
import { describeWithKube } from "../support/requirements.ts";

const PROGRAM = "test/operators/prometheus-operator";
const MODULE = "github.com/prometheus-operator/prometheus-operator";
const ROUNDS = Number(process.env.ROUNDS ?? 5);
const NAMESPACES = Array.from({ length: 40 }, (_, index) => `ns-${String(index).padStart(2, "0")}`);
const MOVED = NAMESPACES.filter((name) => name.startsWith("ns-0"));
const NOTHING = "^nothing$";
const PROMETHEUS = "one";
const STATEFUL_SETS: Resource = { group: "apps", version: "v1", resource: "statefulsets", kind: "StatefulSet", namespaced: true };
const PROMETHEUSES: Resource = {
  group: "monitoring.coreos.com",
  version: "v1",
  resource: "prometheuses",
  kind: "Prometheus",
  namespaced: true,
};
const BINDING = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: prometheus-operator}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: prometheus-operator}
subjects: [{kind: ServiceAccount, name: foo-operator, namespace: foo-system}]
`;

/** A line of the operator's log. */
interface Line {
  readonly ts: string;
  readonly level: string;
  readonly msg: string;
  readonly key?: string;
  readonly err?: string;
}

interface Operator {
  readonly pod: string;
  readonly child: Child;
  readonly lines: Line[];
}

describeWithKube(`prometheus-operator while namespaces move (ROUNDS=${ROUNDS})`, () => {
  let kube: Kube;
  let mesh: Mesh;
  const operators = {} as Record<"default" | "v2", Operator>;
  let uids = new Map<string, string>();

  beforeAll(async () => {
    kube = await startKube();
    mesh = await startMesh({ kube, appName: "prometheus-operator" });
    const folder = await goModuleFolder(PROGRAM, MODULE);
    const crds = join(folder, "example/prometheus-operator-crd");
    for (const file of readdirSync(crds)) await kubectl(kube.kubeconfig, ["apply", "--server-side", "-f", join(crds, file)]);
    const role = join(folder, "example/rbac/prometheus-operator/prometheus-operator-cluster-role.yaml");
    await kubectl(kube.kubeconfig, ["apply", "-f", role]);
    await mesh.apply(BINDING);
    for (const namespace of NAMESPACES) {
      await mesh.createNamespace(namespace);
      const spec = { serviceAccountName: "default", serviceMonitorSelector: {} };
      await eventually(() => mesh.client.create(PROMETHEUSES, { metadata: { namespace, name: PROMETHEUS }, spec } as KubeObject));
    }
    await mesh.apply(regexApp(mesh, NOTHING));
    operators.default = await start("v1");
    operators.v2 = await start("v2");
    await eventually(async () => expect((await statefulSets()).size, outputs()).toBe(NAMESPACES.length), {
      withinMs: 60_000,
      everyMs: 500,
    });
    uids = await statefulSets();
  });
  afterAll(async () => {
    await Promise.all(Object.values(operators).map(({ child }) => child.stop(2_000)));
    await mesh?.stop();
    await kube?.stop();
  });

  async function start(version: string): Promise<Operator> {
    const { name, kubeconfig } = await mesh.addPod({ name: `prometheus-operator-${version}`, labels: { version } });
    const lines: Line[] = [];
    const child = await startChild({
      name,
      command: await goProgram(PROGRAM),
      args: ["--log-format=json", "--log-level=debug", "--web.listen-address=127.0.0.1:0"],
      env: { KUBECONFIG: kubeconfig },
      readyLine: false,
      onLine: (line) => {
        if (line.startsWith("{")) lines.push(JSON.parse(line) as Line);
      },
    });
    return { pod: name, child, lines };
  }

  const statefulSets = async () =>
    new Map((await mesh.client.list(STATEFUL_SETS)).items.map(({ metadata }) => [metadata.namespace ?? "", metadata.uid ?? ""]));
  const outputs = () =>
    Object.values(operators)
      .map(({ pod, child }) => `${pod}:\n${child.output().slice(-3_000)}`)
      .join("\n");
  /** What the operator has logged since the line, by the key of the object. */
  const keysOf = ({ lines }: Operator, since: number, isMeant: (line: Line) => boolean) =>
    new Set(
      lines
        .slice(since)
        .filter(isMeant)
        .map(({ key }) => key),
    );
  const expectAll = (keys: ReadonlySet<string | undefined>) =>
    expect(
      MOVED.filter((namespace) => !keys.has(`${namespace}/${PROMETHEUS}`)),
      outputs(),
    ).toEqual([]);
  const isDeletion = ({ msg }: Line) => msg === "Prometheus deleted";
  const isSync = ({ msg }: Line) => msg === "sync prometheus";

  it("syncs each Prometheus of a moved namespace in its new subset", async () => {
    for (let round = 0; round < ROUNDS; round++) {
      for (const [subset, regex] of [
        ["v2", "^ns-0"],
        ["default", NOTHING],
      ] as const) {
        const [gaining, losing] = [operators[subset], operators[subset === "v2" ? "default" : "v2"]];
        const [gained, lost] = [gaining.lines.length, losing.lines.length];
        await moveTo(mesh, regex);
        await eventually(() => expectAll(keysOf(gaining, gained, isSync)), { withinMs: 20_000, everyMs: 50 });
        // The pod that has just written shows what it loses for 6 s at most. What comes back meanwhile was never gone for its informers.
        await eventually(() => expectAll(keysOf(losing, lost, isDeletion)), { withinMs: 10_000, everyMs: 50 });
      }
    }
  }, 300_000);

  it("logs no error about what exists or does not", () => {
    const errors = Object.values(operators).flatMap(({ pod, lines }) =>
      lines
        .filter(
          ({ level, msg, err = "" }) =>
            level !== "info" && level !== "debug" && /already exists|does not exist|not found/.test(`${msg} ${err}`),
        )
        .map(({ ts, msg, key, err }) => [pod, ts, msg, key, err].join(" ")),
    );
    expect(errors).toEqual([]);
  });

  it("recreates no StatefulSet", async () => {
    expect(await statefulSets()).toEqual(uids);
    expect(mesh.podWrites().filter(({ verb, resource }) => verb === "delete" && resource === "statefulsets")).toEqual([]);
  });

  // A pod also syncs what it shows for a moment longer. Its writes are refused there.
  it("writes in each namespace by one subset at a time", () => {
    const writes = mesh
      .podWrites()
      .filter(({ resource, code }) => resource !== "leases" && resource !== "events" && code < 300)
      .sort((x, y) => x.receivedMs - y.receivedMs);
    for (const namespace of NAMESPACES) {
      const own = writes.filter((write) => write.namespace === namespace);
      const turns = own.filter(({ pod }, index) => pod !== own[index - 1]?.pod);
      expect(turns.length, namespace).toBe(MOVED.includes(namespace) ? 1 + 2 * ROUNDS : 1);
      for (const [index, { receivedMs }] of own.entries()) {
        const earlier = own.slice(0, index).filter(({ pod }) => pod !== own[index]?.pod);
        expect(Math.max(0, ...earlier.map(({ answeredMs }) => answeredMs)), namespace).toBeLessThan(receivedMs);
      }
    }
  });
});
