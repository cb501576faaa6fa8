// The commands of the quickstart and of the tasks behind it, from `helm install` to the removal, on the real control plane with a node that runs
// pods. The test runs each block marked `sh` and compares its output with the block marked `text` that follows. Names of pods, times and
// route versions may differ.
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
import { parse } from "yaml";
import { GUIDE, type GuideSection } from "../support/docs-guide.ts";
import { eventually } from "../support/eventually.ts";
import { goProgram } from "../support/go-build.ts";
import { follow as followGuide, RETRY_MS, stepsOf, untilNotNew } from "../support/guide-steps.ts";
import { MESH_NAMESPACE, REGISTRY } from "../support/helm.ts";
import { LEFT_BY_KUSION_STACK } from "../support/install/left-by-kusion-stack.ts";
import { operatorImage } from "../support/install/operator.ts";
import { type InstalledMesh, startInstalledMesh } from "../support/install/world.ts";
import { describeWithTestNode } from "../support/requirements.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const TIMEOUT_MS = 300_000;
/** The built helm. It installs with one more value, so that restarts of pods begin after 2 s instead of the chart's 20 s. */
const HELM = `helm() {
  if [[ "$*" =~ (^| --)install ]]; then "$HELM" "$@" --set restartSettle=2s; else "$HELM" "$@"; fi
}`;
/** The sources of the command line. */
const CTRLMESH = `ctrlmesh() { "${process.execPath}" "${ROOT}src/cli/main.ts" "$@"; }`;
const POLICY = parse(readFileSync(`${ROOT}examples/traffic/circuit-breaker.yaml`, "utf8")) as { metadata: { name: string } };

interface Reconciled {
  readonly metadata: { readonly generation: number };
  readonly status?: { readonly observedGeneration?: number; readonly reconciledBy?: string };
}

describeWithTestNode("the quickstart, and the tasks behind it", () => {
  let mesh: InstalledMesh;
  let helm: string;
  beforeAll(async () => {
    [mesh, helm] = await Promise.all([startInstalledMesh({ install: false }), goProgram("test/tools/helm")]);
    await mesh.cluster.addImages({ [`${REGISTRY}/ctrlmesh/foo-operator:0.1.0`]: await operatorImage() });
  });
  afterAll(() => mesh?.stop());

  const bash = async (commands: string): Promise<string> => {
    const env = { ...process.env, KUBECONFIG: mesh.kubeconfig, HELM: helm, REGISTRY };
    const script = `${HELM}\n${CTRLMESH}\n${commands}`;
    const { stdout } = await promisify(execFile)("bash", ["-euo", "pipefail", "-c", script], {
      cwd: ROOT,
      env,
      timeout: TIMEOUT_MS,
    });
    return stdout;
  };
  const follow = (sections: readonly GuideSection[]) => followGuide(sections, bash);
  const reconciledBy = () => mesh.run("get", "foo", "b", "-n", "team-b", "-o", "jsonpath={.status.reconciledBy}");

  it("installs the mesh", { timeout: TIMEOUT_MS }, () => follow(GUIDE.install));

  it("divides the operator of examples/install", { timeout: TIMEOUT_MS }, () => follow(GUIDE.divide));

  it("answers what each alert asks, with the labels of the alert", { timeout: TIMEOUT_MS }, async () => {
    const app = { KIND: "VirtualApp", NAMESPACE: "foo-system", NAME: "foo-operator" };
    await mesh.apply({ ...POLICY, metadata: { ...POLICY.metadata, namespace: app.NAMESPACE } });
    const policy = { ...app, KIND: "CircuitBreaker", NAME: POLICY.metadata.name };
    for (const { page, section } of GUIDE.runbook) {
      const [{ commands } = { commands: "" }] = stepsOf([{ page, section }]);
      const labels = Object.entries(section.includes("Policy") ? policy : app).map(([key, value]) => `${key}=${value}\n`);
      expect(await bash(`${labels.join("")}${commands}`), section).not.toBe("");
    }
    await mesh.run("delete", policy.KIND, policy.NAME, "-n", policy.NAMESPACE);
  });

  it("moves a namespace to the canary, which reconciles the objects there", { timeout: TIMEOUT_MS }, async () => {
    await untilNotNew("team-b", mesh.run);
    await follow(GUIDE.move);
    expect(await reconciledBy()).toMatch(/^foo-canary-/);
  });

  // The test node has no port-forward. So the command runs in a pod, next to the proxy.
  it("shows the message of a refused write", async () => {
    const [block] = stepsOf(GUIDE.refuse);
    const command = /^kubectl --server.*$/m.exec(block?.commands.replaceAll("\\\n", "") ?? "")?.[0] ?? "";
    const [name = ""] = (await mesh.podNames("foo-system", "component=foo-operator,version=v1")) ?? [];
    const token = (await mesh.run("create", "token", "foo-operator", "-n", "foo-system")).trim();
    const argv = command
      .replace(/\$\(.*\)/, token)
      .replace("mesh-ca.crt", "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt")
      .split(/ +/);
    const answer = await mesh.cluster.exec("foo-system", name, "operator", argv);
    expect(answer).toEqual({ code: 1, output: block?.output });
  });

  it("moves, pauses and goes back", { timeout: TIMEOUT_MS }, async () => {
    await follow(GUIDE.goBack);
    await eventually(async () => /^foo-\w+-\w+$/.test(await reconciledBy()), RETRY_MS);
  });

  it("freezes a namespace and thaws it", { timeout: TIMEOUT_MS }, () => follow(GUIDE.freeze));

  it("shows the managers' logs and the leader", () => follow(GUIDE.look));

  it("upgrades the mesh, lists the sidecars' images, and rolls back", { timeout: TIMEOUT_MS }, () => follow(GUIDE.upgrade));

  const sidecars = () => mesh.run("get", "pods", "-n", "foo-system", "-o", "jsonpath={.items[*].spec.initContainers[*].name}");
  const scaleManager = async (replicas: number): Promise<void> => {
    await mesh.run("scale", "deployment", "ctrlmesh-manager", "-n", MESH_NAMESPACE, `--replicas=${replicas}`);
    if (replicas > 0) return mesh.rolledOut("deployment/ctrlmesh-manager", MESH_NAMESPACE);
    // A manager that ends still answers for some seconds.
    await mesh.run("wait", "pod", "-n", MESH_NAMESPACE, "-l", "app.kubernetes.io/name=ctrlmesh", "--for=delete", "--timeout=60s");
  };
  /** Both objects get a change, which only a pod that owns their namespaces answers. */
  const expectOneLeader = async () => {
    for (const [name, namespace] of Object.entries({ a: "team-a", b: "team-b" })) {
      const patch = JSON.stringify({ spec: { message: `hello ${Date.now()}` } });
      await mesh.run("patch", "foo", name, "-n", namespace, "--type=merge", "-p", patch);
    }
    await eventually(async () => {
      const lease = ["lease", "foo-operator", "-n", "foo-system", "-o", "jsonpath={.spec.holderIdentity}"];
      const [leader] = (await mesh.run("get", ...lease)).split("_");
      const { items } = await mesh.get<{ items: Reconciled[] }>("foos", "-A");
      return items.every(
        ({ metadata, status }) => status?.observedGeneration === metadata.generation && status.reconciledBy === leader,
      );
    }, RETRY_MS);
  };

  it("starts a stopped operator without a manager: one leader, without a sidecar, and nothing before its entries are gone", {
    timeout: TIMEOUT_MS,
  }, async () => {
    await Promise.all([scaleManager(0), follow(GUIDE.stopOperator)]);
    expect(await mesh.run("get", "pods", "-n", "foo-system", "-o", "name")).toBe("");
    await follow(GUIDE.lookAtManager);
    const pod = ["run", "refused", "-n", "foo-system", "--image=none", "--labels=component=foo-operator", "--dry-run=server"];
    expect((await mesh.tryRun(...pod)).stderr).toContain("failed calling webhook");
    await follow(GUIDE.startWithoutManager);
    expect(await sidecars()).toBe("");
    await expectOneLeader();
  });

  it("takes a stopped operator out of the mesh: its VirtualApp goes, and all pods contend for one lock", {
    timeout: TIMEOUT_MS,
  }, async () => {
    await Promise.all([scaleManager(2), follow(GUIDE.stopOperator)]);
    await follow(GUIDE.takeOut);
    expect(await mesh.run("get", "virtualapps", "-A", "-o", "name")).toBe("");
    expect(await sidecars()).toBe("");
    await expectOneLeader();
  });

  it("brings the operator back: every pod has a sidecar, and the canary has its namespace", { timeout: TIMEOUT_MS }, async () => {
    await bash("kubectl label namespace team-b ns-type=canary-1; kubectl apply -f examples/install/virtualapp.yaml");
    await follow(GUIDE.comeBack);
    expect(await sidecars()).toBe("ctrlmesh-proxy ctrlmesh-proxy ctrlmesh-proxy");
    await eventually(async () => /^foo-canary-/.test(await reconciledBy()), RETRY_MS);
  });

  it("stops the pods of one subset: they end, and the default subset reconciles their namespace", {
    timeout: TIMEOUT_MS,
  }, async () => {
    await follow(GUIDE.stopSubset);
    expect(await mesh.podNames("foo-system", "version=v2")).toEqual([]);
    await eventually(async () => /^foo-\w+-\w+$/.test(await reconciledBy()), RETRY_MS);
  });

  it("ends the wait of a handover: the pod that blocks it goes, and the new owner reconciles the namespace", {
    timeout: TIMEOUT_MS,
  }, async () => {
    await bash("kubectl -n foo-system scale deployment foo-canary --replicas=1");
    await mesh.rolledOut("deployment/foo-canary", "foo-system");
    const [blocking = ""] = await mesh.podNames("foo-system", "version=v1");
    await mesh.cluster.kill("foo-system", blocking, "ctrlmesh-proxy", "SIGSTOP"); // it acknowledges nothing any more
    await bash("kubectl label namespace team-b ns-type=canary-1");
    await eventually(async () => expect(await mesh.run("get", "virtualapps", "-A")).toContain(blocking), RETRY_MS);
    await follow(GUIDE.endWait);
    expect(await mesh.podNames("foo-system", "version=v1")).not.toContain(blocking);
    await eventually(async () => /^foo-canary-/.test(await reconciledBy()), RETRY_MS);
    await mesh.rolledOut("deployment/foo", "foo-system");
  });

  it("removes the mesh", { timeout: TIMEOUT_MS }, async () => {
    await follow(GUIDE.leave);
    expect(await sidecars()).toBe("");
  });

  it("takes over what KusionStack's mesh has left", { timeout: TIMEOUT_MS }, async () => {
    // CRDs that Helm has not installed, and no Lease whose end the new manager would wait for.
    await bash(`kubectl apply --server-side --force-conflicts --field-manager=other-mesh -f deploy/crds
      kubectl annotate crd --all meta.helm.sh/release-name- meta.helm.sh/release-namespace-
      kubectl -n ctrlmesh-system delete lease ctrlmesh-manager`);
    await mesh.apply(...LEFT_BY_KUSION_STACK);
    await follow(GUIDE.migrate);
    const shards = ["get", "shardingconfigs", "-n", "operator-demo"];
    await eventually(async () => {
      const accepted = '{.status.conditions[?(@.type=="Accepted")].status}';
      expect(await mesh.run(...shards, "sharding-root", "-o", `jsonpath=${accepted}`)).toBe("True");
    }, RETRY_MS);
    expect(await mesh.run(...shards, "-o", "jsonpath={.items[*].metadata.finalizers}")).not.toContain("kusionstack");
  });
});
