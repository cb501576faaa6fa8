// `helm install` and one `kubectl apply` bring an operator into the mesh, on the real control plane with a node that runs pods.
// The operator is a Go program on controller-runtime with an unchanged Deployment. Its namespace enforces restricted pods.
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import { annotationKey } from "../../src/api/annotations.ts";
import { pod } from "../node/manifests.ts";
import { nodeImage } from "../node/test-image.ts";
import { eventually } from "../support/eventually.ts";
import { CHART_ARGS, helm, MESH_NAMESPACE, RELEASE } from "../support/helm.ts";
import {
  OPERATOR,
  OPERATOR_IMAGE,
  OPERATOR_NAMESPACE,
  operatorApp,
  operatorHome,
  operatorWorkload,
} from "../support/install/operator.ts";
import { type InstalledMesh, startInstalledMesh } from "../support/install/world.ts";
import type { AuditEvent } from "../support/kube.ts";
import { describeWithTestNode } from "../support/requirements.ts";

const NODE_PROGRAMS = fileURLToPath(new URL("../node/programs", import.meta.url));
const WEB_IMAGE = "web:1";

interface Foo {
  readonly metadata: { readonly generation: number };
  readonly status?: { readonly reconciledBy?: string; readonly observedGeneration?: number };
}

describeWithTestNode("the mesh that helm installs", () => {
  let mesh: InstalledMesh;
  beforeAll(async () => {
    mesh = await startInstalledMesh();
  });
  afterAll(async () => {
    await mesh?.stop();
  });

  const namespaced = (kind: string, name: string, labels: Readonly<Record<string, string>> = {}) => ({
    apiVersion: "v1",
    kind,
    metadata: { name, labels },
  });
  const foo = (namespace: string) => ({
    apiVersion: "demo.ctrlmesh.io/v1",
    kind: "Foo",
    metadata: { name: "one", namespace },
    spec: { message: "hello" },
  });
  /** The pod that has reconciled the newest spec. */
  const reconciledBy = (namespace: string) =>
    eventually(async () => {
      const { metadata, status } = await mesh.get<Foo>("foo", "one", "-n", namespace);
      return status?.observedGeneration === metadata.generation && (status.reconciledBy ?? false);
    }, 40_000);
  const waitForApp = (what: string) =>
    mesh.run("wait", "virtualapp", OPERATOR, "-n", OPERATOR_NAMESPACE, `--for=${what}`, "--timeout=100s");
  const holderOf = async (lock: string) =>
    (await mesh.run("get", "lease", lock, "-n", OPERATOR_NAMESPACE, "-o", "jsonpath={.spec.holderIdentity}")) || undefined;
  const rolledOut = (workload: string) => mesh.rolledOut(workload, OPERATOR_NAMESPACE);

  it("has two managers with one leader, in a namespace that enforces restricted pods", async () => {
    const names = await mesh.podNames(MESH_NAMESPACE, "app.kubernetes.io/name=ctrlmesh");
    expect(names).toHaveLength(2);
    expect(names).toContain(
      (await mesh.run("get", "lease", "ctrlmesh-manager", "-n", MESH_NAMESPACE, "-o", "jsonpath={.spec.holderIdentity}")).split(
        "_",
      )[0],
    );
  });

  it("injects an unchanged Deployment, which becomes ready and converges", { timeout: 150_000 }, async () => {
    await mesh.apply(...operatorHome(), operatorApp());
    await waitForApp("condition=InjectionReady");
    await mesh.apply(
      namespaced("Namespace", "team-a"),
      namespaced("Namespace", "canary-a"),
      operatorWorkload({ name: "foo", replicas: 2, version: "v1" }),
      operatorWorkload({ name: "foo-canary", replicas: 1, version: "v2" }),
    );
    await rolledOut("deployment/foo");
    await rolledOut("deployment/foo-canary");
    await waitForApp("condition=Ready");
    await waitForApp("condition=Converged");
    for (const name of await mesh.podNames(OPERATOR_NAMESPACE, `component=${OPERATOR}`)) {
      const sidecar = await mesh.run(
        "get",
        "pod",
        name,
        "-n",
        OPERATOR_NAMESPACE,
        "-o",
        "jsonpath={.spec.initContainers[0].name}",
      );
      expect([name, sidecar]).toEqual([name, "ctrlmesh-proxy"]);
    }
  });

  it("lets each subset reconcile its own namespaces", { timeout: 150_000 }, async () => {
    await mesh.apply(foo("team-a"), foo("canary-a"));
    expect(await reconciledBy("team-a")).toMatch(/^foo-[^c]/);
    expect(await reconciledBy("canary-a")).toMatch(/^foo-canary-/);
    expect(await holderOf(OPERATOR)).toMatch(/^foo-[^c]/);
    expect(await holderOf(`${OPERATOR}---v2`)).toMatch(/^foo-canary-/);
  });

  /** Waits until a canary leads by NAME---v2. An operator that bypasses its proxy cannot use that lock. */
  const canaryLeader = (prefix: string) =>
    eventually(async () => {
      const holder = await holderOf(`${OPERATOR}---v2`);
      const [name = ""] = (await mesh.podNames(OPERATOR_NAMESPACE, `component=${OPERATOR},version=v2`)).filter((each) =>
        holder?.includes(each),
      );
      return name.startsWith(prefix) && holder;
    }, 40_000);

  it("keeps each lock with a pod of its own subset through a rollout restart", { timeout: 150_000 }, async () => {
    const before = await mesh.podNames(OPERATOR_NAMESPACE, `component=${OPERATOR}`);
    for (const name of ["foo", "foo-canary"])
      await mesh.run("rollout", "restart", `deployment/${name}`, "-n", OPERATOR_NAMESPACE);
    await rolledOut("deployment/foo");
    await rolledOut("deployment/foo-canary");
    await eventually(async () => {
      const [lead, canary] = [await holderOf(OPERATOR), await holderOf(`${OPERATOR}---v2`)];
      const stays = before.some((name) => lead?.includes(name) || canary?.includes(name));
      return !stays && lead?.startsWith("foo-") && !lead.startsWith("foo-canary-") && canary?.startsWith("foo-canary-");
    }, 40_000);
  });

  it("intercepts by kubeconfig, and by iptables in a namespace that allows NET_ADMIN", { timeout: 200_000 }, async () => {
    const canary = (intercept: string) =>
      operatorWorkload({
        name: "foo-canary",
        replicas: 1,
        version: "v2",
        annotations: { "ctrlmesh.kruise.io/intercept": intercept },
      });
    await mesh.apply(canary("kubeconfig"));
    await rolledOut("deployment/foo-canary");
    expect(await canaryLeader("foo-canary-")).toBeTruthy();
    const [pod = ""] = await mesh.podNames(OPERATOR_NAMESPACE, `component=${OPERATOR},version=v2`);
    const env = await mesh.run("get", "pod", pod, "-n", OPERATOR_NAMESPACE, "-o", "jsonpath={.spec.containers[0].env[*].name}");
    expect(env.split(" ")).toContain("KUBECONFIG");

    await mesh.run("label", "namespace", OPERATOR_NAMESPACE, "pod-security.kubernetes.io/enforce=privileged", "--overwrite");
    await mesh.apply(canary("iptables"));
    await rolledOut("deployment/foo-canary");
    expect(await canaryLeader("foo-canary-")).toBeTruthy();
    await mesh.run("patch", "foo", "one", "-n", "canary-a", "--type=merge", "-p", '{"spec":{"message":"by iptables"}}');
    expect(await reconciledBy("canary-a")).toBe((await mesh.podNames(OPERATOR_NAMESPACE, `component=${OPERATOR},version=v2`))[0]);
    const spec = await mesh.get<{
      spec: { initContainers: { name: string; securityContext?: { capabilities?: { add?: string[] } } }[] };
    }>("pod", (await mesh.podNames(OPERATOR_NAMESPACE, `component=${OPERATOR},version=v2`))[0] ?? "", "-n", OPERATOR_NAMESPACE);
    const adding = spec.spec.initContainers.filter(({ securityContext }) => securityContext?.capabilities?.add?.length);
    expect(adding.map(({ name }) => name)).toEqual(["ctrlmesh-iptables"]);
  });

  it("sends an operator's calls to other servers through the proxy if its pods ask for that, and no other pod can use it", {
    timeout: 200_000,
  }, async () => {
    await mesh.cluster.addImages({ [WEB_IMAGE]: nodeImage(["/app/web.ts"], { "/app": NODE_PROGRAMS }) });
    await mesh.apply(...["listed", "other"].map((name) => pod(name, [{ name: "web", image: WEB_IMAGE }])));
    await mesh.run("wait", "pod", "listed", "other", "--for=condition=Ready", "--timeout=60s");
    const [listed, other] = [await mesh.cluster.podIP("default", "listed"), await mesh.cluster.podIP("default", "other")];
    const annotations = { [annotationKey("egress")]: "true", [annotationKey("egress-private-addresses")]: "10.200.0.0/16" };
    await mesh.apply(operatorWorkload({ name: "foo-canary", replicas: 1, version: "v2", annotations }));
    await rolledOut("deployment/foo-canary");
    expect(await canaryLeader("foo-canary-")).toBeTruthy();
    const [name = ""] = await mesh.podNames(OPERATOR_NAMESPACE, `component=${OPERATOR},version=v2`);
    /** The status that a program in the operator's container gets: curl reads the variables. */
    const call = async (host: string) => {
      const argv = ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "--max-time", "10", `http://${host}:8080/`];
      return (await mesh.cluster.exec(OPERATOR_NAMESPACE, name, "operator", argv)).output;
    };
    expect([await call(listed), await call(other)]).toEqual(["200", "200"]);
    const rule = { name: "inside", interceptType: "Whitelist", contentType: "Normal", contents: [listed], methods: ["*"] };
    await mesh.apply({
      apiVersion: "ctrlmesh.kusionstack.io/v1alpha1",
      kind: "CircuitBreaker",
      metadata: { name: "hosts", namespace: OPERATOR_NAMESPACE },
      spec: { selector: { matchLabels: { version: "v2" } }, trafficInterceptRules: [rule] },
    });
    await mesh.run("wait", "circuitbreaker", "hosts", "-n", OPERATOR_NAMESPACE, "--for=condition=Synced", "--timeout=30s");
    expect([await call(listed), await call(other)]).toEqual(["200", "403"]);
    const proxy = `http://${await mesh.cluster.podIP(OPERATOR_NAMESPACE, name)}:15002`;
    const argv = ["curl", "-s", "--max-time", "5", "-x", proxy, `http://${listed}:8080/`];
    const CANNOT_CONNECT = 7;
    expect((await mesh.cluster.exec("default", "other", "web", argv)).code).toBe(CANNOT_CONNECT);
    await mesh.run("delete", "circuitbreaker", "hosts", "-n", OPERATOR_NAMESPACE);
    await eventually(async () => (await call(other)) === "200", 20_000);
  });

  it("serves the operator as a StatefulSet", { timeout: 150_000 }, async () => {
    await mesh.run("delete", "deployment", "foo-canary", "-n", OPERATOR_NAMESPACE, "--wait");
    await mesh.apply(operatorWorkload({ kind: "StatefulSet", name: "foo-set", replicas: 2, version: "v2" }));
    await rolledOut("statefulset/foo-set");
    expect(await canaryLeader("foo-set-")).toBeTruthy();
    await mesh.run("rollout", "restart", "statefulset/foo-set", "-n", OPERATOR_NAMESPACE);
    await rolledOut("statefulset/foo-set");
    expect(await canaryLeader("foo-set-")).toBeTruthy();
    await waitForApp("condition=Converged");
  });

  it("calls no webhook for pods that no app selects", async () => {
    const webhookCalls = async () => {
      const metrics = await Promise.all(
        (await mesh.podNames(MESH_NAMESPACE, "app.kubernetes.io/name=ctrlmesh")).map(async (name) => {
          const address = await mesh.cluster.forward(MESH_NAMESPACE, name, 5448);
          return (await fetch(`http://${address}/metrics`)).text();
        }),
      );
      const lines = metrics.flatMap((text) =>
        text.split("\n").filter((line) => /^ctrlmesh_manager_webhook_requests_total{[^}]*inject/.test(line)),
      );
      return lines.reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0);
    };
    const before = await webhookCalls();
    expect(before).toBeGreaterThan(0);
    const security = { allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"] } };
    const plain = {
      containers: [{ name: "main", image: OPERATOR_IMAGE, args: ["-h"], securityContext: security }],
      securityContext: { runAsNonRoot: true, seccompProfile: { type: "RuntimeDefault" } },
      restartPolicy: "Never",
    };
    await mesh.apply(
      { apiVersion: "v1", kind: "Pod", metadata: { name: "unselected", namespace: OPERATOR_NAMESPACE }, spec: plain },
      {
        apiVersion: "v1",
        kind: "Pod",
        metadata: { name: "elsewhere", namespace: "team-a", labels: { component: OPERATOR } },
        spec: plain,
      },
    );
    expect(await webhookCalls()).toBe(before);
    const creates = mesh.cluster.kube
      .audit()
      .filter(({ verb, objectRef }) => verb === "create" && objectRef?.resource === "pods");
    const called = ({ annotations = {} }: AuditEvent) => JSON.stringify(annotations).includes("ctrlmesh-injection");
    expect(creates.filter(called).length).toBeGreaterThan(0);
    const isUnselected = (name = "") => ["unselected", "elsewhere"].includes(name);
    const plainOnes = creates.filter(({ objectRef }) => isUnselected(objectRef?.name) && objectRef?.subresource === undefined);
    expect(plainOnes.map(called)).toEqual([false, false]);
    const volumes = await mesh.run(
      "get",
      "pod",
      "unselected",
      "-n",
      OPERATOR_NAMESPACE,
      "-o",
      "jsonpath={.spec.volumes[*].name}",
    );
    expect(volumes).not.toContain("ctrlmesh");
  });

  it("leaves operators working through helm upgrade and helm uninstall", { timeout: 200_000 }, async () => {
    const identities = async () =>
      JSON.stringify(
        await mesh
          .get<{ items: { metadata: { uid: string } }[] }>("pods", "-n", OPERATOR_NAMESPACE, "-l", `component=${OPERATOR}`)
          .then(({ items }) => items.map(({ metadata }) => metadata.uid).sort()),
      );
    await waitForApp("condition=Converged");
    const before = await identities();
    await helm(
      ["upgrade", RELEASE, ...CHART_ARGS, "--values", "-", "--wait", "--timeout", "90s"],
      mesh.kubeconfig,
      JSON.stringify({ replicaCount: 3, logLevel: "debug" }),
    );
    expect(await helm(["test", RELEASE, "--timeout", "60s"], mesh.kubeconfig)).toContain("Succeeded");
    await eventually(async () => (await mesh.podNames(MESH_NAMESPACE, "app.kubernetes.io/name=ctrlmesh")).length === 3, 40_000);
    await mesh.run("patch", "foo", "one", "-n", "canary-a", "--type=merge", "-p", '{"spec":{"message":"after the upgrade"}}');
    expect(await reconciledBy("canary-a")).toMatch(/^foo-set-/);

    await helm(["uninstall", RELEASE, "--wait", "--timeout", "60s"], mesh.kubeconfig);
    const left = await mesh.run("get", "mutatingwebhookconfigurations,validatingwebhookconfigurations", "-o", "name");
    expect(left).not.toContain("ctrlmesh");
    await mesh.run("wait", "--for=delete", "pod", "-l", "app.kubernetes.io/name=ctrlmesh", "-n", MESH_NAMESPACE, "--timeout=60s");
    await mesh.run("patch", "foo", "one", "-n", "canary-a", "--type=merge", "-p", '{"spec":{"message":"without a manager"}}');
    expect(await reconciledBy("canary-a")).toMatch(/^foo-set-/);
    expect(await identities()).toBe(before);
  });
});
