// Rules about other servers on the real control plane: objects applied with kubectl decide about what pods send to their forward proxy, and their
// status shows it.
import { afterAll, beforeAll, expect, it } from "vitest";
import { stringify } from "yaml";
import type { PolicyStatus } from "../../src/api/policy-status.ts";
import { demoVirtualApp } from "../support/demo-app.ts";
import { eventually } from "../support/eventually.ts";
import { type HelloServer, startHelloServer } from "../support/hello-server.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { kubectl } from "../support/kubectl.ts";
import { type Mesh, type MeshPod, startMesh } from "../support/mesh.ts";
import { createProbe, type Probe } from "../support/probe.ts";
import { describeWithKube } from "../support/requirements.ts";
import { getThroughTunnel } from "../support/tunnel.ts";

const NAMESPACE = "foo-system";

describeWithKube("rules about other servers", () => {
  let kube: Kube;
  let mesh: Mesh;
  let pod: MeshPod;
  let probe: Probe;
  let server: HelloServer;
  /** One server under two names. */
  let listed: string;
  let other: string;

  beforeAll(async () => {
    server = await startHelloServer();
    const { port } = server;
    [listed, other] = [`localhost:${port}`, `127.0.0.1:${port}`];
    kube = await startKube();
    mesh = await startMesh({ kube, restarts: true });
    await mesh.createNamespace("team-a");
    await mesh.apply(demoVirtualApp());
    pod = await mesh.addPod({ name: "foo-0", labels: { version: "v1", calls: "others" }, egress: true });
    probe = createProbe({ url: pod.proxyUrl, caPem: pod.proxyCaPem, token: kube.token });
  });
  afterAll(async () => {
    await probe?.close();
    await mesh?.stop();
    await kube?.stop();
    server?.close();
  });

  const call = (address: string) => getThroughTunnel(pod.egressUrl, address, server.ca);
  const passed = { status: 200, error: "", body: "hello" };
  const denied = { status: 403, error: "EGRESS_DENIED", body: "" };
  const statusOf = async (name: string): Promise<PolicyStatus> =>
    JSON.parse(await kubectl(kube.kubeconfig, ["get", "circuitbreaker", name, "-n", NAMESPACE, "-o", "json"])).status ?? {};
  const synced = async (name: string) => (await statusOf(name)).conditions?.find(({ type }) => type === "Synced");
  const put = (kind: string, name: string, spec: object) =>
    mesh.apply(
      stringify({ apiVersion: "ctrlmesh.kusionstack.io/v1alpha1", kind, metadata: { name, namespace: NAMESPACE }, spec }),
    );
  async function apply(name: string, spec: object, isSynced: Partial<{ status: string; reason: string }> = { status: "True" }) {
    await put("CircuitBreaker", name, spec);
    await eventually(async () => expect(await synced(name)).toMatchObject(isSynced), 10_000);
  }
  const remove = (name: string) => kubectl(kube.kubeconfig, ["delete", "circuitbreaker", name, "-n", NAMESPACE]);
  const selector = { matchLabels: { calls: "others" } };
  const whitelist = () => ({
    name: "inside",
    interceptType: "Whitelist",
    contentType: "Normal",
    contents: [listed],
    methods: ["CONNECT"],
  });

  it("without rules everything is open but metadata services", async () => {
    expect(await call(other)).toEqual(passed);
    expect(await call("169.254.169.254:80")).toEqual({ status: 403, error: "EGRESS_ADDRESS_REFUSED", body: "" });
  });

  it("a Whitelist lets its hosts through and refuses others, also after kill -9 of the proxy; deleting it opens", async () => {
    await apply("hosts", { selector, trafficInterceptRules: [whitelist()] });
    expect(await call(listed)).toEqual(passed);
    expect(await call(other)).toEqual(denied);
    expect((await statusOf("hosts")).targets).toEqual({ total: 1, synced: 1, opened: 0 });
    await pod.restartProxy();
    await eventually(async () => expect(await call(listed)).toEqual(passed), 10_000);
    expect(await call(other)).toEqual(denied);
    await remove("hosts");
    await eventually(async () => expect(await call(other)).toEqual(passed), 10_000);
  });

  it("a Blacklist refuses what it matches, and Shadow only counts", async () => {
    const blacklist = {
      ...whitelist(),
      interceptType: "Blacklist",
      contentType: "Regexp",
      contents: ["^127[.]"],
      methods: ["*"],
    };
    await apply("hosts", { mode: "Shadow", selector, trafficInterceptRules: [blacklist] });
    expect(await call(other)).toEqual(passed);
    const metrics = await (await fetch(`${pod.healthUrl}/metrics`)).text();
    expect(metrics).toMatch(
      /policy_decisions_total\{kind="CircuitBreaker",rule="hosts\/inside",decision="deny",mode="Shadow"\} [1-9]/,
    );
    await apply("hosts", { selector, trafficInterceptRules: [blacklist] });
    await eventually(async () => expect(await call(other)).toEqual(denied), 10_000);
    expect(await call(listed)).toEqual(passed);
    await remove("hosts");
    await eventually(async () => expect(await call(other)).toEqual(passed), 10_000);
  });

  it("restRules and resourceRules of one rule share its bucket", async () => {
    const resourceRules = [{ apiGroups: [""], resources: ["configmaps"], verbs: ["create"], namespaces: ["team-a"] }];
    const restRules = [{ url: `https://${listed}/*`, method: "CONNECT" }];
    const bucket = { burst: 2, interval: "1h", limit: 1 };
    await apply("rate", {
      selector,
      rateLimitings: [{ name: "both", resourceRules, restRules, bucket, triggerPolicy: "LimiterOnly" }],
    });
    const createMap = async (name: string) =>
      (await probe.send("POST", "/api/v1/namespaces/team-a/configmaps", { metadata: { name } })).status;
    expect([(await call(listed)).status, await createMap("one")]).toEqual([200, 201]);
    expect(await call(listed)).toEqual({ status: 429, error: "LIMITED", body: "" });
    expect(await createMap("two")).toBe(429);
    expect(await call(other)).toEqual(passed);
    await remove("rate");
  });

  it("a fault about one host spares others, and the API server", async () => {
    const match = { httpMatch: [{ host: { exact: "localhost" }, method: "CONNECT" }] };
    const httpFault = [{ name: "gone", abort: { httpStatus: 503, percent: "100" }, match }];
    await put("FaultInjection", "gone", { selector, httpFault });
    await eventually(async () => expect(await call(listed)).toEqual({ status: 503, error: "FAULT_INJECTED", body: "" }), 10_000);
    expect(await call(other)).toEqual(passed);
    expect((await probe.get("/api/v1/namespaces/team-a/configmaps")).status).toBe(200);
    await kubectl(kube.kubeconfig, ["delete", "faultinjection", "gone", "-n", NAMESPACE]);
    await eventually(async () => expect(await call(listed)).toEqual(passed), 10_000);
  });

  it("the status names a pod that was created without the annotation", async () => {
    await mesh.addPod({ name: "plain-0", labels: { version: "v1", calls: "others" } });
    await apply("hosts", { selector, trafficInterceptRules: [whitelist()] }, { status: "False", reason: "NoEgress" });
    expect((await synced("hosts"))?.message).toMatch(
      /^1 of 2 proxies enforce these rules; pod plain-0: .* without the annotation ctrlmesh\.kruise\.io\/egress$/,
    );
    expect((await statusOf("hosts")).targetStatus?.[0]).toMatchObject({ podName: "plain-0" });
    await remove("hosts");
  });

  it("rules that can match nothing are refused by the API server itself", async () => {
    const restRules = [{ url: "/v1", method: "get" }];
    const spec = { selector, rateLimitings: [{ name: "r", restRules, triggerPolicy: "ForceOpened" }] };
    const refused = apply("bad", spec);
    await expect(refused).rejects.toThrow(/restRules\[0\]\.url: Invalid value/);
    await expect(refused).rejects.toThrow(/restRules\[0\]\.method: Unsupported value/);
  });
});
