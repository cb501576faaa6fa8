// Policies on the real control plane when somebody leans on them: names that evade a rule, answers that are no failures, an API server that
// hangs or is gone, a manager that is unsure, and edits during an incident. The tags (D1 ...) are those of issue 27.
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
import { parse } from "yaml";
import { VIRTUAL_APPS } from "../../src/api/resources.ts";
import type { Resource } from "../../src/kube/client/resource.ts";
import { LEASES, type LeaseSpec, NAMESPACES, PODS } from "../../src/kube/client/resources.ts";
import type { KubeObject } from "../../src/kube/types.ts";
import type { Child } from "../support/child-process.ts";
import { blocksOf, readDocument } from "../support/doc-blocks.ts";
import { eventually } from "../support/eventually.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { type KubectlResult, kubectl, tryKubectl } from "../support/kubectl.ts";
import { type Mesh, type MeshPod, startMesh, startOperator } from "../support/mesh.ts";
import { createMeshPolicies, type MeshPolicies } from "../support/mesh-policies.ts";
import { createProbe, type Probe } from "../support/probe.ts";
import { readMetrics } from "../support/proxy-metrics.ts";
import { sendRaw } from "../support/raw-client.ts";
import { describeWithKube } from "../support/requirements.ts";
import { suspend } from "../support/suspend.ts";

type Budget = KubeObject & {
  readonly spec: object;
  readonly status?: { readonly currentHealthy?: number; readonly disruptionsAllowed?: number };
};

const NAMESPACE = "foo-system";
const APP = "foo-operator";
const APPS = "/apis/apps/v1/namespaces/team-a";
const TEAM_A = "/api/v1/namespaces/team-a";
/** Its kubelet does not run. */
const NODE = "edge";
const NODES: Resource = { group: "", version: "v1", resource: "nodes", kind: "Node", namespaced: false };
const BUDGETS: Resource<Budget> = {
  group: "policy",
  version: "v1",
  resource: "poddisruptionbudgets",
  kind: "PodDisruptionBudget",
  namespaced: true,
};
const RECOVER = "ctrlmesh.kusionstack.io/recover";
const KUSIONSTACK_FINALIZER = "finalizer.ctrlmesh.kusionstack.io/protected";
const ONE_AN_HOUR = { burst: 1, interval: "1h", limit: 1 };
const BUDGET = { namespace: "budget", name: "web" };
const WEBS = ["web-0", "web-1", "web-2", "web-3", "web-4"];
const MANUAL = { type: "Manual" };

describeWithKube("policies that somebody leans on", () => {
  let kube: Kube;
  let mesh: Mesh;
  let pod: MeshPod;
  let probe: Probe;
  let policies: MeshPolicies;
  let secondOperator: Child;
  /** What the tests begin with. Each has a resource of its own, so all are in force from the beginning, which saves a second for each. */
  const given: Parameters<MeshPolicies["apply"]>[] = [];

  const rule = (resources: string[], verbs: string[], apiGroups = [""]) => ({ apiGroups, resources, verbs, namespaces: ["*"] });
  /** The spec of a CircuitBreaker with one rule. */
  const breaker = (resourceRule: object, fields: object, role = "probed") => ({
    selector: { matchLabels: { role } },
    rateLimitings: [{ name: "guard", resourceRules: [resourceRule], ...fields }],
  });
  const forbids = (resourceRule: object) => breaker(resourceRule, { triggerPolicy: "ForceOpened" });
  /** Opens at its second request. */
  const onRate = (recoverPolicy: object = MANUAL) => ({ triggerPolicy: "Normal", bucket: ONE_AN_HOUR, recoverPolicy });
  const onErrors = (trigger: object, recoverPolicy: object = MANUAL) => ({ triggerPolicy: "Normal", trigger, recoverPolicy });
  const window = (sleepingWindowSize: string) => ({ type: "SleepingWindow", sleepingWindowSize });
  const denies = (requests: object) => ({ targetVirtualApps: [{ name: APP }], circuitBreaking: { apiServer: requests } });
  const ABORT = { httpStatus: 500, percent: "100" };
  const aborts = (resource: string) => ({
    selector: { matchLabels: { role: "probed" } },
    httpFault: [{ name: "storm", match: { resources: [rule([resource], ["list"])] }, abort: ABORT }],
  });
  const throughProxy = (...args: string[]) => tryKubectl(pod.adminKubeconfig, args);
  const refusedBy = (name: string) => expect.stringContaining(`ctrlmesh: refused by ${name}`);
  /** Lists a resource of the core group, or of apps. */
  const list = (resource: string) =>
    probe.get(`${resource.endsWith("sets") || resource === "deployments" ? APPS : TEAM_A}/${resource}`);
  const read = async (resource: string) => (await list(resource)).status;
  const guardOf = async (name: string) =>
    (await policies.get("CircuitBreaker", name)).status?.targetStatus?.[0]?.limitingSnapshots?.[0];
  /** 1 if the breaker is open in the pod's proxy. */
  const openGauge = async (name: string) =>
    (await readMetrics(pod.healthUrl)).sum("ctrlmesh_proxy_breaker_open", { rule: `${name}/guard` });
  const lockOf = async (name: string) => (await mesh.client.get(LEASES, { namespace: NAMESPACE, name })).spec ?? {};
  const locks = () => Promise.all([APP, "second-lock"].map(lockOf));
  /** Evicts the pods of the budget. kubectl ends after 5 s, meanwhile other tests run. */
  let draining: Promise<KubectlResult>;
  let locksBefore: Awaited<ReturnType<typeof locks>>;

  beforeAll(async () => {
    kube = await startKube({ controllerManager: true });
    // The manager outlasts an API server that hangs for some seconds.
    mesh = await startMesh({ kube, leaseDurationMs: 15_000 });
    policies = createMeshPolicies(mesh.client, NAMESPACE);
    for (const name of ["team-a", "budget", "precious"]) await mesh.createNamespace(name);
    for (const name of [APP, "bystander"]) await createApp(name);
    await createNode();
    const budget = { minAvailable: WEBS.length, selector: { matchLabels: { app: "web" } } };
    await mesh.client.create(BUDGETS, { metadata: BUDGET, spec: budget });
    const webs = WEBS.map((name) => createReadyPod("budget", name, { app: "web" }));
    const [probed, led] = await Promise.all([
      mesh.addPod({ name: "foo-0", labels: { role: "probed" } }),
      mesh.addPod({ name: "foo-1", labels: { role: "led" }, operator: true }),
      createReadyPod("team-a", "worker"),
      ...webs,
    ]);
    pod = probed;
    probe = createProbe({ url: pod.proxyUrl, caPem: pod.proxyCaPem, token: kube.token });
    secondOperator = await startOperator(led.kubeconfig, NAMESPACE, "second-lock", led.name, false, ["--beside"]);
    await eventually(
      async () => expect((await locks()).map(({ holderIdentity = "" }) => holderIdentity)).not.toContain(""),
      20_000,
    );
    await Promise.all(given.map((policy) => policies.apply(...policy)));
    locksBefore = await locks();
    await eventually(async () =>
      expect((await mesh.client.get(BUDGETS, BUDGET)).status).toMatchObject({ currentHealthy: 5, disruptionsAllowed: 0 }),
    );
    draining = throughProxy("drain", NODE, "--force", "--pod-selector=app=web", "--timeout=1s");
  });
  afterAll(async () => {
    await secondOperator?.stop(2_000);
    await probe?.close();
    await mesh?.stop();
    await kube?.stop();
  });

  /** An app that divides nothing and names no lock, as one that only wants limits. */
  const createApp = (name: string) =>
    mesh.client.create(VIRTUAL_APPS, {
      apiVersion: "ctrlmesh.kruise.io/v1alpha1",
      kind: "VirtualApp",
      metadata: { name, namespace: NAMESPACE },
      spec: { selector: { matchLabels: { component: name } } },
    });
  async function createNode(): Promise<void> {
    await mesh.client.create(NODES, { metadata: { name: NODE } });
    const addresses = [{ type: "InternalIP", address: "127.0.0.1" }];
    const status = { addresses, daemonEndpoints: { kubeletEndpoint: { Port: 1 } } };
    await mesh.client.patch(NODES, { name: NODE }, { type: "merge", body: { status } }, { subresource: "status" });
  }
  async function createReadyPod(namespace: string, name: string, labels: Record<string, string> = {}): Promise<void> {
    const spec = { nodeName: NODE, containers: [{ name: "main", image: "example.invalid/main" }] };
    // A new namespace gets its ServiceAccount a moment later.
    await eventually(() => mesh.client.create(PODS, { metadata: { namespace, name, labels }, spec }));
    const status = { phase: "Running", conditions: [{ type: "Ready", status: "True" }] };
    await mesh.client.patch(PODS, { namespace, name }, { type: "merge", body: { status } }, { subresource: "status" });
  }

  given.push(["CircuitBreaker", "proxies", forbids(rule(["nodes/proxy", "pods/proxy"], ["*"]))]);
  it("rules for nodes/proxy and pods/proxy refuse every path behind the proxy of a node or pod (D1)", async () => {
    const kubeletRun = `/api/v1/nodes/${NODE}/proxy/run/team-a/worker/main?cmd=id`;
    const answers = await Promise.all([
      throughProxy("get", "--raw", `/api/v1/nodes/${NODE}/proxy/metrics`),
      tryKubectl(pod.adminKubeconfig, ["create", "--raw", kubeletRun, "-f", "-"], "{}"),
      throughProxy("get", "--raw", `${TEAM_A}/pods/worker/proxy/admin`),
    ]);
    const refusal = refusedBy('CircuitBreaker foo-system/proxies, rule "guard"');
    expect(answers.map(({ stderr }) => stderr)).toEqual([refusal, refusal, refusal]);
    expect((await probe.get(`/api/v1/nodes/${NODE}`)).status).toBe(200);
  });

  const nonResourceRules = [{ nonResourceURLs: ["/metrics", "/debug/*"], verbs: ["*"] }];
  given.push(["TrafficPolicy", "paths", denies({ nonResourceRules })]);
  it("an escaped letter, a final slash or a longer path does not evade a rule about a path (D5)", async () => {
    const errorOf = async (path: string) => (await probe.get(path)).headers["x-ctrlmesh-error"];
    for (const path of ["/metrics", "/%6detrics", "/metrics/", "/metrics/slis", "/debug/%70prof/", "/%64ebug/pprof"])
      expect([path, await errorOf(path)]).toEqual([path, "BREAKER_OPEN"]);
    for (const path of ["/healthz", "/metricsx", "/%68ealthz"]) expect([path, await errorOf(path)]).toEqual([path, undefined]);
  });

  const NAMESPACE_DELETES = { apiGroups: [""], resources: ["namespaces"], verbs: ["delete"], clusterScope: true };
  given.push(["TrafficPolicy", "namespaces", denies({ resourceRules: [NAMESPACE_DELETES] })]);
  it("a TrafficPolicy with clusterScope forbids kubectl to delete a namespace (D12)", async () => {
    const { code, stderr } = await throughProxy("delete", "namespace", "precious", "--wait=false");
    expect([code, stderr]).toEqual([1, refusedBy("TrafficPolicy foo-system/namespaces")]);
    expect((await mesh.client.get(NAMESPACES, { name: "precious" })).metadata.deletionTimestamp).toBeUndefined();
  });

  const EVENT_WRITES = rule(["events"], ["create", "patch"], ["", "events.k8s.io"]);
  given.push(["CircuitBreaker", "events", breaker(EVENT_WRITES, { triggerPolicy: "LimiterOnly", bucket: ONE_AN_HOUR })]);
  it("a limited PATCH of an Event is refused without Retry-After, so that recorders drop it (D20)", async () => {
    const patch = (path: string) => probe.send("PATCH", path, { count: 2 });
    expect((await patch(`${TEAM_A}/events/none`)).status).toBe(404);
    for (const path of [`${TEAM_A}/events/none`, "/apis/events.k8s.io/v1/namespaces/team-a/events/none"]) {
      const { status, headers } = await patch(path);
      expect([path, status, headers["retry-after"]]).toEqual([path, 429, undefined]);
    }
  });

  const IDLE = { ...onRate(window("2s")), bucket: { burst: 20, interval: "1s", limit: 20 } };
  given.push(["CircuitBreaker", "idle", breaker(rule(["secrets"], ["list"]), IDLE)]);
  it("an open breaker half opens at the end of its window, without a request, and closes after 15 successes (D7)", async () => {
    const readTimes = (count: number) => Promise.all(Array.from({ length: count }, () => read("secrets")));
    expect(await readTimes(60)).toContain(503);
    expect(await openGauge("idle")).toBe(1);
    await eventually(async () => expect(await openGauge("idle")).toBe(0), 5_000);
    await eventually(async () => expect(await guardOf("idle")).toMatchObject({ name: "guard", state: "HalfOpen" }), 5_000);
    // So many at a time may test the server.
    for (const count of [1, 2, 4, 8]) expect(await readTimes(count)).toEqual(Array(count).fill(200));
    await eventually(async () => expect(await guardOf("idle")).toMatchObject({ name: "guard", state: "Closed" }), 5_000);
  });

  // Each breaker is about a resource of its own.
  const incident = (resource: string, fields: object = {}) =>
    breaker(rule([resource], ["list"], ["", "apps"]), { ...onRate(window("10m")), ...fields });
  const EDITS: readonly (readonly [resource: string, edit: string, spec: object])[] = [
    ["deployments", "a longer window", incident("deployments", { recoverPolicy: window("24h") })],
    ["daemonsets", "Manual", incident("daemonsets", { recoverPolicy: MANUAL })],
    ["statefulsets", "another bucket", incident("statefulsets", { bucket: { ...ONE_AN_HOUR, burst: 9 } })],
    ["podtemplates", "a pruned annotation", incident("podtemplates", { properties: { edited: "true" } })],
    ["replicasets", "Disabled", { ...incident("replicasets"), mode: "Disabled" }],
  ];
  for (const [resource] of EDITS)
    given.push(["CircuitBreaker", resource, incident(resource), { annotations: { [RECOVER]: "at the last incident" } }]);
  it("an edit, another mode or a pruned annotation does not close an open breaker (D10)", async () => {
    const readAll = () => Promise.all(EDITS.map(async ([resource, edit]) => [edit, await read(resource)]));
    expect([await readAll(), await readAll()]).toEqual([200, 503].map((code) => EDITS.map(([, edit]) => [edit, code])));
    // An apply without the annotation removes it.
    await Promise.all(EDITS.map(([resource, , spec]) => policies.apply("CircuitBreaker", resource, spec)));
    expect(await readAll()).toEqual(EDITS.map(([, edit]) => [edit, edit === "Disabled" ? 200 : 503]));
    await policies.apply("CircuitBreaker", "replicasets", incident("replicasets"));
    expect(await read("replicasets")).toBe(503);
    // A person can still close it.
    await policies.merge("CircuitBreaker", "daemonsets", { metadata: { annotations: { [RECOVER]: "by hand" } } });
    await eventually(async () => expect(await read("daemonsets")).toBe(200), 5_000);
  });

  given.push(["CircuitBreaker", "deletes", breaker(rule(["pods"], ["delete"]), onErrors({ consecutiveErrors: 5 }))]);
  it("evictions that a budget turns away do not open a breaker of deletes (D9)", async () => {
    const { stderr } = await draining;
    expect(stderr.match(/violate the pod's disruption budget/g)).toHaveLength(5);
    expect((await probe.send("DELETE", `${TEAM_A}/pods/none`)).status).toBe(404);
    expect(await openGauge("deletes")).toBe(0);
  });

  given.push(["CircuitBreaker", "dry-runs", breaker(rule(["podtemplates"], ["delete"]), onRate())]);
  it("a dry run takes a token like any other request (D22)", async () => {
    const dryRun = () => throughProxy("delete", "podtemplate", "none", "-n", "team-a", "--dry-run=server");
    expect((await dryRun()).stderr).toContain("NotFound");
    expect((await dryRun()).stderr).toEqual(refusedBy('CircuitBreaker foo-system/dry-runs, rule "guard"'));
  });

  const LED = { selector: { matchLabels: { role: "led" } } };
  given.push(["CircuitBreaker", "all", breaker(rule(["*"], ["*"], ["*"]), { triggerPolicy: "ForceOpened" }, "led")]);
  given.push(["FaultInjection", "all", { ...LED, httpFault: [{ abort: ABORT }] }]);
  it("operators keep their locks under rules about everything, although their app names no lock (D6)", async () => {
    const renewedMs = async () =>
      (await locks()).map(({ renewTime = "" }, index) => Date.parse(renewTime) - Date.parse(locksBefore[index]?.renewTime ?? ""));
    // Longer than the lease, and than the 3 s for which the operators lead without a renewal.
    await eventually(async () => expect(Math.min(...(await renewedMs()))).toBeGreaterThan(5_000), 8_000);
    const kept = ({ holderIdentity, leaseTransitions }: LeaseSpec) => [holderIdentity, leaseTransitions];
    expect((await locks()).map(kept)).toEqual(locksBefore.map(kept));
  });

  given.push([
    "CircuitBreaker",
    "hung",
    breaker(rule(["services"], ["list"]), onErrors({ consecutiveErrors: 3, slowerThan: "1s" })),
  ]);
  it("clients that give up on an API server that hangs open a breaker (D8)", async () => {
    const listServices = () => throughProxy("get", "--raw", `${TEAM_A}/services`, "--request-timeout=1500ms");
    expect((await listServices()).code).toBe(0);
    const resume = suspend(kube.pid);
    try {
      const answers = await Promise.all([listServices(), listServices(), listServices()]);
      expect(answers.map(({ code }) => code)).toEqual([1, 1, 1]);
    } finally {
      resume();
    }
    await eventually(async () => expect(await openGauge("hung")).toBe(1), 3_000);
    expect((await listServices()).stderr).toEqual(refusedBy('CircuitBreaker foo-system/hung, rule "guard"'));
  });

  const EXECS = rule(["pods/exec", "endpoints"], ["*"]);
  given.push(["CircuitBreaker", "exec", breaker(EXECS, onErrors({ consecutiveErrors: 3 }, window("2s")))]);
  it("kubectl exec that does not reach its node counts as a failure, and closes no half-open breaker (D2)", async () => {
    // Over WebSocket the API server upgrades before it calls the node, so only SPDY (kubectl's fallback) learns of the failure.
    const spdy = { KUBECTL_REMOTE_COMMAND_WEBSOCKETS: "false" };
    const exec = () => tryKubectl(pod.adminKubeconfig, ["exec", "-n", "team-a", "worker", "--", "true"], undefined, spdy);
    const answers = await Promise.all([exec(), exec(), exec()]);
    expect(answers.map(({ code }) => code)).toEqual([1, 1, 1]);
    expect(await read("endpoints")).toBe(503);
    expect((await exec()).stderr).toEqual(refusedBy('CircuitBreaker foo-system/exec, rule "guard"'));
    await eventually(async () => expect(await openGauge("exec")).toBe(0), 5_000);
    expect((await exec()).code).toBe(1);
    expect(await read("endpoints")).toBe(503);
    await eventually(async () => expect(await read("endpoints")).toBe(200), 5_000);
  });

  given.push(["FaultInjection", "protected", aborts("limitranges"), { finalizers: [KUSIONSTACK_FINALIZER] }]);
  it("an object with KusionStack's finalizer is deleted at once, and its faults end (D13)", async () => {
    expect(await read("limitranges")).toBe(500);
    const deleted = tryKubectl(kube.kubeconfig, ["delete", "fj", "protected", "-n", NAMESPACE, "--timeout=5s"]);
    try {
      await eventually(async () => expect(await read("limitranges")).toBe(200), 3_000);
      expect(await deleted).toMatchObject({ code: 0 });
    } finally {
      await policies.merge("FaultInjection", "protected", { metadata: { finalizers: null } }).catch(() => undefined);
    }
  });

  given.push(["CircuitBreaker", "outdated", forbids(rule(["resourcequotas"], ["list"]))]);
  given.push(["FaultInjection", "storm", aborts("serviceaccounts")]);
  it("an object that becomes invalid while the manager restarts keeps its rules, and no other object's (D3)", async () => {
    expect([await read("resourcequotas"), await read("serviceaccounts")]).toEqual([503, 500]);
    const [manager] = mesh.managers;
    await manager?.stop();
    // The schema of the API server lets it pass, and the manager does not.
    const broken = { name: "hosts", interceptType: "Blacklist", contentType: "Regexp", contents: ["("], methods: ["*"] };
    await policies.merge("CircuitBreaker", "outdated", { spec: { trafficInterceptRules: [broken] } });
    await manager?.start();
    try {
      await eventually(async () => {
        const { conditions = [] } = (await policies.get("CircuitBreaker", "outdated")).status ?? {};
        expect(conditions[0]).toMatchObject({ type: "Accepted", status: "False", reason: "Invalid" });
      });
      await policies.delete("FaultInjection", "storm");
      await eventually(async () => expect(await read("serviceaccounts")).toBe(200), 10_000);
      expect(await read("resourcequotas")).toBe(503);
    } finally {
      await policies.delete("CircuitBreaker", "outdated");
    }
    await eventually(async () => expect(await read("resourcequotas")).toBe(200), 10_000);
  });

  given.push(["FaultInjection", "orphaned", aborts("replicationcontrollers")]);
  it("the faults of pods whose app is deleted can be taken back (D4)", async () => {
    expect(await read("replicationcontrollers")).toBe(500);
    await kubectl(kube.kubeconfig, ["delete", "virtualapp", APP, "-n", NAMESPACE]);
    try {
      await policies.delete("FaultInjection", "orphaned");
      await eventually(async () => expect(await read("replicationcontrollers")).toBe(200), 10_000);
    } finally {
      await createApp(APP);
    }
  });

  given.push(["CircuitBreaker", "tried", { ...forbids(rule(["persistentvolumeclaims"], ["list"])), mode: "Shadow" }]);
  it("the commands of limit-traffic.md answer which rule refuses, why, since when and in which mode (D14)", async () => {
    const blocks = blocksOf(readDocument("docs/tasks/limit-traffic.md"));
    const textsOf = (title: string, kind: string) =>
      blocks.flatMap(({ section, info, text }) => (section === title && info === kind ? [text] : []));
    await draining; // its evictions are deletes
    const [guard = ""] = textsOf("Stop an operator that deletes too much", "yaml");
    await policies.apply("CircuitBreaker", "guard", (parse(guard) as { spec: object }).spec);
    for (let i = 0; i < 5; i++) expect((await probe.send("DELETE", `${TEAM_A}/pods/none`)).status).toBe(404);
    expect((await probe.send("DELETE", `${TEAM_A}/pods/none`)).status).toBe(503);
    const title = "Which rule refuses, why, and since when?";
    const [table = "", describeGuard = "", rulesOfPods = ""] = textsOf(title, "bash");
    const [documented = ""] = textsOf(title, "");
    const [header = "", row = ""] = documented.split("\n").map(withoutFigures);
    await eventually(async () => {
      const shown = (await runInShell(table)).split("\n").map(withoutFigures);
      expect(shown).toEqual(expect.arrayContaining([header, row]));
      expect(shown.join("\n")).toMatch(/^circuitbreaker\S+\/tried True Shadow Shadow /m);
    }, 5_000);
    const described = await runInShell(describeGuard);
    expect(described).toMatch(/Warning +BreakerOpened .*rule "delete-pods" opened in pod foo-0: .*5/);
    const states = await runInShell(rulesOfPods);
    expect(states).toMatch(/^foo-0\n {2}delete-pods Opened 2\S+Z .*5.*\nfoo-1\n {2}delete-pods Closed/);
  });
  const runInShell = async (command: string) =>
    (await promisify(execFile)("bash", ["-c", command], { env: { ...process.env, KUBECONFIG: kube.kubeconfig } })).stdout;
  /** A line of a table, with N for each figure, and without what is the reader's own. */
  const withoutFigures = (line: string) =>
    line
      .replaceAll(/foo-operator-0|foo-0/g, "POD")
      .replaceAll(/2\S+T\S+Z/g, "TIME")
      .replaceAll(/\b\d+[smhd]?\b/g, "N")
      .replaceAll(/ +/g, " ");

  given.push(["CircuitBreaker", "gone", breaker(rule(["pods/exec", "configmaps"], ["*"]), onErrors({ consecutiveErrors: 4 }))]);
  // The last test: the API server stays away.
  it("an upgrade to an API server that is gone is a failure like any other request (D2)", async () => {
    await kube.crash();
    const headers = Object.entries({
      Connection: "Upgrade",
      Upgrade: "websocket",
      "Sec-WebSocket-Version": "13",
      "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
      "Sec-WebSocket-Protocol": "v5.channel.k8s.io",
    });
    const target = `${TEAM_A}/pods/worker/exec?command=true&stdout=true`;
    const fails = async () => expect(await read("configmaps")).toBeGreaterThanOrEqual(500);
    await fails();
    await fails();
    // kubectl would ask for the pod first.
    await sendRaw({ url: pod.proxyUrl, caPem: pod.proxyCaPem, token: kube.token }, { target, headers }).catch(() => undefined);
    await fails();
    expect(await openGauge("gone")).toBe(1);
    expect((await list("configmaps")).headers["x-ctrlmesh-error"]).toBe("BREAKER_OPEN");
  });
});
