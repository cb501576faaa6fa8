// Invalid VirtualApps on the real control plane without a webhook. The API server refuses most with a message that names the field.
// A condition reports the others, and the proxies keep their routes.
import { afterAll, beforeAll, expect, it } from "vitest";
import { parse, stringify } from "yaml";
import { VIRTUAL_APPS } from "../../src/api/resources.ts";
import { demoVirtualApp } from "../support/demo-app.ts";
import { eventually } from "../support/eventually.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { tryKubectl } from "../support/kubectl.ts";
import { type Mesh, type MeshPod, startMesh } from "../support/mesh.ts";
import { describeWithKube } from "../support/requirements.ts";

interface App {
  spec: {
    selector: object;
    route: { subRules: { name: string; match: object[] }[] };
    subsets: { name: string; labels: Record<string, string>; routeRules: string[] }[];
    [field: string]: unknown;
  };
}

describeWithKube("an invalid VirtualApp", () => {
  let kube: Kube;
  let mesh: Mesh;
  let pod: MeshPod;

  beforeAll(async () => {
    kube = await startKube();
    mesh = await startMesh({ kube });
    for (const name of ["team-a", "canary-eu"]) await mesh.createNamespace(name);
    await mesh.apply(demoVirtualApp());
    pod = await mesh.addPod({ name: "foo-canary-0", labels: { version: "v2" } });
    await mesh.createFoo("canary-eu", "own", "x");
  });
  afterAll(async () => {
    await mesh?.stop();
    await kube?.stop();
  });

  const edited = (edit: (app: App) => void) => {
    const app = parse(demoVirtualApp()) as App;
    edit(app);
    return stringify(app);
  };
  const rule = (app: App) => app.spec.route.subRules[0] as App["spec"]["route"]["subRules"][number];
  const expectSliceKept = async () => {
    const { stdout } = await tryKubectl(pod.adminKubeconfig, ["get", "foos", "-A", "-o", "name"]);
    expect(stdout).toBe("foo.demo.ctrlmesh.io/own\n");
  };

  it.each<[string, (app: App) => void, string]>([
    ["an empty selector", (app) => (app.spec.selector = {}), "spec.selector"],
    [
      "an unknown rule",
      (app) => (app.spec.subsets[0] as { routeRules: string[] }).routeRules.push("canry"),
      "spec.subsets: Invalid value: every entry of routeRules",
    ],
    [
      "a rule used twice",
      (app) => app.spec.subsets.push({ name: "v3", labels: { version: "v3" }, routeRules: ["canary"] }),
      "spec.subsets",
    ],
    ["a regex that does not compile", (app) => (rule(app).match = [{ namespaceRegex: "(" }]), "namespaceRegex"],
    [
      "two selector kinds at once",
      (app) => (rule(app).match = [{ namespaceRegex: "a", namespaceSelector: { matchLabels: { a: "b" } } }]),
      "spec.route.subRules[0].match[0]",
    ],
    ["an unknown field", (app) => (app.spec.subset = []), "spec.subset"],
  ])("with %s is refused by the API server, and the message names the field", async (_, edit, field) => {
    const { code, stderr } = await tryKubectl(kube.kubeconfig, ["apply", "-f", "-"], edited(edit));
    expect(code).toBe(1);
    expect(stderr).toContain(field);
    await expectSliceKept();
  });

  it("that only the manager can validate is reported in a condition until a valid spec replaces it", async () => {
    const twoTerms = edited((app) => {
      rule(app).match = [
        { objectSelector: { matchLabels: { a: "1", b: "2" } }, resources: [{ apiGroups: [""], resources: ["pods"] }] },
      ];
    });
    await mesh.apply(twoTerms);
    const accepted = async () => {
      const { status } = await mesh.client.get(VIRTUAL_APPS, { namespace: "foo-system", name: "foo-operator" });
      return status?.conditions?.find(({ type }) => type === "Accepted");
    };
    await eventually(async () =>
      expect(await accepted()).toMatchObject({
        status: "False",
        reason: "Invalid",
        message: expect.stringContaining("spec.route.subRules[0].match[0].objectSelector"),
      }),
    );
    await expectSliceKept();
    await eventually(async () => {
      const { stdout } = await tryKubectl(kube.kubeconfig, ["describe", "virtualapp", "foo-operator", "-n", "foo-system"]);
      expect(stdout).toMatch(/Warning\s+ConfigRejected/);
    });
    await mesh.apply(demoVirtualApp());
    await eventually(async () => expect(await accepted()).toMatchObject({ status: "True" }));
    await expectSliceKept();
  });
});
