// A namespace in which an operator stops writing while somebody works there, on a real API server, by the program ctrlmesh.
import { afterAll, beforeAll, expect } from "vitest";
import { parse, stringify } from "yaml";
import { readOwnership } from "../../src/api/ownership-slice.ts";
import { OWNERSHIP_SLICES, VIRTUAL_APPS } from "../../src/api/resources.ts";
import { ctrlmesh, PATIENT } from "../support/ctrlmesh.ts";
import { demoVirtualApp } from "../support/demo-app.ts";
import { eventually } from "../support/eventually.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { tryKubectl } from "../support/kubectl.ts";
import { type Mesh, type MeshPod, startMesh } from "../support/mesh.ts";
import { describeWithKube, itWithProgram } from "../support/requirements.ts";

const APP = { namespace: "foo-system", name: "foo-operator" };
const HERE = ["--app", APP.name, "-n", APP.namespace];
const PLACE = "team-a";

describeWithKube("a frozen namespace", () => {
  let kube: Kube;
  let mesh: Mesh;
  let main: MeshPod;
  let canary: MeshPod;
  const run = (...args: string[]) => ctrlmesh(kube.kubeconfig, [...args, PATIENT]);
  const settled = async () =>
    expect(await run("wait", APP.name, "-n", APP.namespace, "--timeout", "30s")).toMatchObject({ code: 0 });
  /** What the operator's client is answered through its proxy. */
  const asOperator = (pod: MeshPod, ...args: string[]) => tryKubectl(pod.adminKubeconfig, args);
  const write = (pod: MeshPod, namespace: string) =>
    asOperator(pod, "annotate", "configmap", "settings", "-n", namespace, "--overwrite", `at=${Date.now()}`);
  /** A write that kubectl sends without reading the object first. */
  const refusal = async (pod: MeshPod) => (await asOperator(pod, "delete", "configmap", "settings", "-n", PLACE)).stderr;
  const stateOf = async (namespace: string) => {
    const slices = await mesh.client.list(OWNERSHIP_SLICES, { namespace: APP.namespace });
    const entries = slices.items.flatMap(readOwnership);
    const { state, owners } = entries.find(({ namespaces }) => namespaces?.includes(namespace)) ?? {};
    return [state, owners?.[0]?.subset];
  };

  beforeAll(async () => {
    kube = await startKube();
    mesh = await startMesh({ kube });
    for (const name of [PLACE, "team-b"]) {
      await mesh.createNamespace(name);
      await mesh.apply(stringify({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "settings", namespace: name } }));
    }
    const whole = parse(demoVirtualApp());
    await mesh.apply(stringify({ ...whole, spec: { selector: whole.spec.selector, configuration: whole.spec.configuration } }));
    main = await mesh.addPod({ name: "foo-0" });
    await eventually(async () => expect(await write(main, PLACE)).toMatchObject({ code: 0 }));
  });
  afterAll(async () => {
    await mesh?.stop();
    await kube?.stop();
  });

  itWithProgram("kubectl", "is only read by an app that has no subsets, and others are written as before", async () => {
    const frozen = await run("freeze", `ns/${PLACE}`, ...HERE, "--reason", "restore of the database");
    expect(frozen).toMatchObject({ code: 0, stdout: `VirtualApp foo-system/foo-operator has frozen namespace ${PLACE}\n` });
    await settled();
    const refused = await write(main, PLACE);
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain(
      `namespace "${PLACE}" is frozen: restore of the database; to end that: ctrlmesh thaw ${PLACE} --app ${APP.name} -n ${APP.namespace}`,
    );
    expect((await asOperator(main, "get", "configmap", "settings", "-n", PLACE)).code).toBe(0);
    expect((await asOperator(main, "get", "configmaps", "-A")).stdout).toContain(PLACE);
    expect((await asOperator(main, "delete", "namespace", PLACE, "--wait=false")).code).toBe(1);
    expect((await write(main, "team-b")).code).toBe(0);
  });

  itWithProgram("kubectl", "is shown by the status, by check and as an object", async () => {
    expect((await run("status", APP.name, "-n", APP.namespace)).stdout).toContain(
      `  frozen: namespace ${PLACE}: restore of the database\n`,
    );
    expect((await run("check", "--app", APP.name, "-n", APP.namespace)).stdout).toContain(
      `namespace ${PLACE} is frozen, so its operator writes nothing there: restore of the database\n`,
    );
    const { status } = await mesh.client.get(VIRTUAL_APPS, APP);
    expect(status?.namespaces?.frozen).toBe(1);
    await eventually(async () => expect(await stateOf(PLACE)).toEqual(["Frozen", "default"]));
  });

  itWithProgram(
    "kubectl",
    "stays frozen when it moves to another subset and its proxy starts again without a manager, until it is thawed",
    async () => {
      await mesh.labelNamespace(PLACE, { "ns-type": "canary-1" });
      await mesh.apply(demoVirtualApp()); // as somebody who does not know of the freeze would: kubectl leaves it as it is
      await settled();
      canary = await mesh.addPod({ name: "foo-canary-0", labels: { version: "v2" } });
      await eventually(async () => expect(await stateOf(PLACE)).toEqual(["Frozen", "v2"]));
      for (const pod of [main, canary]) expect(await refusal(pod)).toContain("is frozen");
      expect((await asOperator(canary, "get", "configmaps", "-n", PLACE)).stdout).toContain("settings");
      await mesh.killManager();
      await canary.restartProxy();
      await eventually(async () => expect(await refusal(canary)).toContain("is frozen"));
      await mesh.startManager();
      expect((await run("thaw", PLACE, ...HERE)).code).toBe(0);
      await settled();
      expect(await write(canary, PLACE)).toMatchObject({ code: 0 });
      expect(await refusal(main)).toContain('belongs to subset "v2"');
      await eventually(async () => expect(await stateOf(PLACE)).toEqual(["Owned", "v2"]));
    },
  );

  itWithProgram("kubectl", "is none by a wrong name, and a thaw of another one says which are frozen", async () => {
    expect(await run("freeze", "team-z", ...HERE)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("there is no namespace team-z"),
    });
    expect((await run("freeze", PLACE, "-n", APP.namespace)).code).toBe(64);
    expect((await run("freeze", PLACE, ...HERE, "--dry-run")).code).toBe(0);
    expect(await run("thaw", PLACE, ...HERE)).toMatchObject({ code: 1, stderr: expect.stringContaining("it has frozen none") });
    expect((await run("freeze", "team-b", ...HERE)).code).toBe(0);
    expect((await run("thaw", PLACE, ...HERE)).stderr).toContain("frozen are: team-b");
    const patch = JSON.stringify({ spec: { route: { frozen: { "team-b": "x".repeat(300) } } } });
    const tooLong = await tryKubectl(kube.kubeconfig, [
      "patch",
      "vapp",
      APP.name,
      "-n",
      APP.namespace,
      "--type=merge",
      "-p",
      patch,
    ]);
    expect(tooLong.stderr).toContain("spec.route.frozen.team-b: Too long");
  });
});
