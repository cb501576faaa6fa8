// An operator with leader election and eight kinds of children for each Foo, in two subsets, while ten of forty namespaces move in place
// there and back. It knows nothing of the mesh: it creates each child once, and meets no error but a refusal of what was under way.
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Resource } from "../../src/kube/client/resource.ts";
import { CONFIG_MAPS } from "../../src/kube/client/resources.ts";
import { moveTo, regexApp } from "../handover/regex-app.ts";
import { type Child, startChild } from "../support/child-process.ts";
import { eventually } from "../support/eventually.ts";
import { goProgram } from "../support/go-build.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { FOOS, type Mesh, startMesh } from "../support/mesh.ts";
import { describeWithKube } from "../support/requirements.ts";

const RBAC = fileURLToPath(new URL("../operators/go-children/rbac.yaml", import.meta.url));
const ROUNDS = Number(process.env.ROUNDS ?? (process.env.NIGHTLY === "true" ? 5 : 2));
const NAMESPACES = Array.from({ length: 40 }, (_, index) => `ns-${String(index).padStart(2, "0")}`);
const MOVED = NAMESPACES.filter((name) => name.startsWith("ns-0"));
const NOTHING = "^nothing$";
const builtIn = (group: string, resource: string, kind: string): Resource => ({
  group,
  version: "v1",
  resource,
  kind,
  namespaced: true,
});
const KINDS = [
  CONFIG_MAPS as Resource,
  builtIn("", "secrets", "Secret"),
  builtIn("", "serviceaccounts", "ServiceAccount"),
  builtIn("", "services", "Service"),
  builtIn("rbac.authorization.k8s.io", "roles", "Role"),
  builtIn("networking.k8s.io", "networkpolicies", "NetworkPolicy"),
  builtIn("apps", "deployments", "Deployment"),
  builtIn("apps", "statefulsets", "StatefulSet"),
];

/** A line of the operator, see test/operators/go-children/say.go. */
interface Line {
  readonly foo: string;
  readonly kind?: string;
  readonly step?: "begun" | "created" | "reconciled";
  readonly error?: string;
  readonly code?: number;
}

interface Operator {
  readonly subset: "default" | "v2";
  readonly pod: string;
  readonly child: Child;
  readonly lines: Line[];
}

describeWithKube(`an operator with eight kinds of children while namespaces move (ROUNDS=${ROUNDS})`, () => {
  let kube: Kube;
  let mesh: Mesh;
  const operators: Operator[] = [];
  /** uid of each child by "resource namespace/name". */
  let uids = new Map<string, string>();

  beforeAll(async () => {
    kube = await startKube();
    mesh = await startMesh({ kube });
    await mesh.apply(await readFile(RBAC, "utf8"));
    for (const name of NAMESPACES) {
      await mesh.createNamespace(name);
      await mesh.createFoo(name, "first", "x");
    }
    await mesh.apply(regexApp(mesh, NOTHING));
    await start("default", "v1");
    await start("v2", "v2");
    await eventually(async () => expect((await children()).size).toBe(NAMESPACES.length * KINDS.length), {
      withinMs: 60_000,
      everyMs: 500,
    });
    uids = await children();
  });
  afterAll(async () => {
    await Promise.all(operators.map(({ child }) => child.stop(2_000)));
    await mesh?.stop();
    await kube?.stop();
  });

  async function start(subset: Operator["subset"], version: string): Promise<void> {
    const { name, kubeconfig } = await mesh.addPod({ name: `children-${version}`, labels: { version } });
    const lines: Line[] = [];
    const child = await startChild({
      name,
      command: await goProgram("test/operators/go-children"),
      args: [],
      env: { KUBECONFIG: kubeconfig, POD_NAME: name, POD_NAMESPACE: mesh.appNamespace, LOCK_NAME: mesh.appName },
      readyLine: false,
      onLine: (line) => {
        if (line.startsWith("{")) lines.push(JSON.parse(line) as Line);
      },
    });
    operators.push({ subset, pod: name, child, lines });
  }

  async function children(): Promise<Map<string, string>> {
    const found = await Promise.all(
      KINDS.map(async (kind) => {
        const { items } = await mesh.client.list(kind);
        const own = items.filter(({ metadata }) => metadata.ownerReferences?.some((owner) => owner.kind === "Foo"));
        return own.map(({ metadata: { namespace, name, uid } }) => [`${kind.resource} ${namespace}/${name}`, uid ?? ""] as const);
      }),
    );
    return new Map(found.flat());
  }

  const of = (subset: Operator["subset"]): Operator => operators.find((operator) => operator.subset === subset) as Operator;
  const underWay = ({ lines }: Operator) =>
    lines.reduce(
      (count, { step, error }) => count + (step === "begun" ? 1 : 0) - (step === "reconciled" || error !== undefined ? 1 : 0),
      0,
    );
  const outputs = () => operators.map(({ pod, child }) => `${pod}:\n${child.output().slice(-3_000)}`).join("\n");

  it("reconciles the Foos of a moved namespace in its new subset, also those whose reconcile was under way", async () => {
    for (let round = 0; round < ROUNDS; round++) {
      for (const [subset, regex] of [
        ["v2", "^ns-0"],
        ["default", NOTHING],
      ] as const) {
        const { lines } = of(subset);
        const start = lines.length;
        const late = `late-${round}-${subset}`;
        await Promise.all(MOVED.map((namespace) => mesh.createFoo(namespace, late, "x")));
        await moveTo(mesh, regex);
        await eventually(
          () => {
            const done = new Set(lines.slice(start).flatMap(({ foo, step }) => (step === "reconciled" ? [foo] : [])));
            for (const namespace of MOVED)
              for (const name of ["first", late]) expect(done, outputs()).toContain(`${namespace}/${name}`);
            // client-go repeats a write that was answered 503, and must not do so after the way back.
            for (const operator of operators) expect(underWay(operator), outputs()).toBe(0);
          },
          { withinMs: 20_000, everyMs: 50 },
        );
      }
    }
    const { items } = await mesh.client.list(FOOS);
    await eventually(async () => expect((await children()).size).toBe(items.length * KINDS.length), 10_000);
  }, 200_000);

  it("no child was created twice or recreated", async () => {
    const now = await children();
    expect([...uids].filter(([child, uid]) => now.get(child) !== uid)).toEqual([]);
    const creations = mesh
      .podWrites()
      .filter(({ verb, resource, code }) => verb === "create" && code === 201 && KINDS.some((kind) => kind.resource === resource))
      .map(({ resource, namespace, name }) => `${resource} ${namespace}/${name}`);
    expect(creations.length).toBe(new Set(creations).size);
  });

  it("the operators met no error about what exists or does not", () => {
    const errors = operators.flatMap(({ pod, lines }) =>
      lines.filter(({ error, code }) => error !== undefined && code !== 403).map((line) => ({ pod, ...line })),
    );
    expect(errors).toEqual([]);
  });

  /** How often each Foo's operator was refused a write. */
  const refusals = (): Map<string, number> => {
    const refused = new Map<string, number>();
    for (const { pod, lines } of operators)
      for (const { foo, code } of lines) if (code === 403) refused.set(`${pod} ${foo}`, (refused.get(`${pod} ${foo}`) ?? 0) + 1);
    return refused;
  };

  it("a loss refused no write of a Foo that was reconciled", () => {
    expect([...refusals()].filter(([foo]) => foo.endsWith("/first"))).toEqual([]);
  });

  it("a loss refused at most one write of each reconcile that was under way", () => {
    // Each subset loses each moved namespace once a round. One reconcile of a Foo runs at a time.
    expect([...refusals()].filter(([, times]) => times > ROUNDS)).toEqual([]);
  });

  it("the writes of the two subsets in a namespace take turns with its moves", () => {
    for (const namespace of NAMESPACES) {
      const writers = mesh.podWrites().filter((write) => write.namespace === namespace && write.code < 400);
      const turns = writers.filter(({ pod }, index) => pod !== writers[index - 1]?.pod);
      expect(turns.length, namespace).toBeLessThanOrEqual(MOVED.includes(namespace) ? 1 + 2 * ROUNDS : 1);
    }
  });
});
