import { expect, it } from "vitest";
import { compileHere } from "../../../test/support/compile.ts";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { createFakeKubeClient, type FakeCall } from "../../../test/support/fake-kube-client.ts";
import { NO_CLUSTERS } from "../../../test/support/no-clusters.ts";
import { appOf } from "../../../test/support/source-apps.ts";
import { sampleVirtualApp } from "../../../test/support/virtual-app.ts";
import { ROUTES_FINALIZER } from "../../api/app-status.ts";
import { INJECTED_LABEL } from "../../api/injected-pod.ts";
import { VIRTUAL_APPS } from "../../api/resources.ts";
import type { VirtualApp } from "../../api/virtual-app.ts";
import { silentLogger } from "../../base/log.ts";
import { createRegistry } from "../../base/metrics.ts";
import { MUTATING_WEBHOOK_CONFIGURATIONS, PODS, SERVICES } from "../../kube/client/resources.ts";
import { createControllerMetrics } from "../../runtime/controller-metrics.ts";
import { createInformers } from "../../runtime/informers.ts";
import { injectionConfiguration } from "../admission/configuration/configurations.ts";
import { createApps } from "../apps/app.ts";
import { createKnownClusters } from "../clusters/known-clusters.ts";
import { createKnownDecisions } from "../decisions/known-decisions.ts";
import { createPodHistory, recordPods } from "../facts/pod-history.ts";
import { createPodWatch } from "../facts/pod-watch.ts";
import { createLabelStates } from "../labels/label-state.ts";
import { createManagerMetrics } from "../metrics/metrics.ts";
import { createEvictor } from "../restart/evictor.ts";
import { createProxyRegistry } from "../server/proxy-registry.ts";
import { createVirtualAppSource } from "../virtual-app/virtual-app-source.ts";
import { addAppController } from "./add.ts";

/** The controller on a fake API server. Some calls hang. */
async function setUp(names: readonly string[], hangs: (call: FakeCall) => boolean, managerNamespace?: string) {
  const client = createFakeKubeClient();
  client.before = (call) =>
    hangs(call)
      ? new Promise((_, reject) => call.signal?.addEventListener("abort", () => reject(call.signal?.reason)))
      : undefined;
  const put = (name: string) => {
    const sample = sampleVirtualApp() as unknown as VirtualApp;
    const metadata = { ...sample.metadata, name, uid: name, generation: 1, finalizers: [ROUTES_FINALIZER] };
    client.put<VirtualApp>(VIRTUAL_APPS, { ...sample, metadata });
  };
  for (const name of names) put(name);
  const [clock, random, log] = [createFakeClock(), () => 0, silentLogger()];
  const metricsRegistry = createRegistry("manager", "0");
  const informers = createInformers({ client, clock, random, log });
  const target = { namespace: managerNamespace ?? "", serviceName: "ctrlmesh-manager", url: "", timeoutSeconds: 10 };
  const source = createVirtualAppSource();
  const apps = createApps(informers, [source]);
  const pods = createPodWatch({ informers, apps, log });
  const registry = createProxyRegistry({ log });
  const past = createPodHistory({ clock, tokenCacheMs: 10_000 });
  recordPods(pods, past, registry);
  const events = { event: () => undefined };
  const controller = addAppController(source, {
    ...(managerNamespace === undefined ? {} : { webhooks: { target, size: { isTooLarge: false } } }),
    client,
    informers,
    clusters: createKnownClusters(informers, createKnownDecisions()),
    watched: NO_CLUSTERS.watched,
    pods,
    clock,
    log,
    settleMs: 0,
    registry,
    apps,
    past,
    labels: createLabelStates(new Map()),
    compile: compileHere,
    events,
    evictor: createEvictor({ client, pods, events, clock, log }),
    metrics: createControllerMetrics(metricsRegistry),
    observed: createManagerMetrics({ metricsRegistry }),
  });
  const { signal } = new AbortController();
  for (const each of [informers, pods, controller]) await each.start(signal);
  const read = (name: string) => client.read<VirtualApp>(VIRTUAL_APPS, { namespace: "ops", name });
  const hasStatus = (name: string) => read(name)?.status !== undefined;
  const condition = (name: string, of: string) => read(name)?.status?.conditions?.find(({ type }) => type === of);
  return {
    client,
    clock,
    target,
    condition,
    hasStatus,
    read,
    async stop() {
      const stopped = controller.stop();
      await clock.advance(5_000); // aborts the hanging calls
      await stopped;
      await pods.stop();
      await informers.stop();
    },
  };
}

const isWriteOf = (name: string) => (call: FakeCall) => call.verb === "patch" && call.name === name;

it("an app whose call to the API server hangs does not delay other apps", async () => {
  const world = await setUp(["a", "b", "c"], isWriteOf("a"));
  await world.clock.advance(1_000);
  expect(["a", "b", "c"].map(world.hasStatus)).toEqual([false, true, true]);
  await world.stop();
});

it("a hanging call is aborted, and the app is reconciled again", async () => {
  let hangs = true;
  const world = await setUp(["a"], (call) => hangs && isWriteOf("a")(call));
  await world.clock.advance(14_000);
  hangs = false;
  expect(world.hasStatus("a")).toBe(false);
  await world.clock.advance(3_000);
  expect(world.hasStatus("a")).toBe(true);
  await world.stop();
});

it("an app whose status could not be written for an hour is reconciled soon after that", async () => {
  let fails = true;
  const world = await setUp(["a"], () => false);
  world.client.before = (call) => {
    if (fails && isWriteOf("a")(call)) throw new Error("connection refused");
  };
  await world.clock.advance(3_600_000);
  fails = false;
  const failed = world.client.calls.filter(isWriteOf("a")).length;
  await world.clock.advance(15_000);
  expect(world.client.calls.filter(isWriteOf("a")).length).toBeGreaterThan(failed);
  await world.stop();
});

it("writes InjectionReady with all other conditions, when the API server has shown the app's entry for a second", async () => {
  const world = await setUp(["a"], () => false, "ctrlmesh-system");
  await world.clock.advance(1_000);
  expect(world.condition("a", "InjectionReady")).toMatchObject({ status: "False", reason: "WebhookPending" });
  world.client.put(
    MUTATING_WEBHOOK_CONFIGURATIONS,
    injectionConfiguration({ kinds: [], apps: [appOf(world.read("a"))], target: world.target, trustPem: "PEM" }),
  );
  await world.clock.advance(1_500);
  expect(world.condition("a", "InjectionReady")).toMatchObject({ status: "True", reason: "InForce" });
  await world.stop();
});

it("serves apps while the list of webhook configurations is refused, and writes InjectionReady once there is a list", async () => {
  let isRefused = true;
  const refuse = ({ verb, resource }: FakeCall) => {
    if (isRefused && verb === "list" && resource === MUTATING_WEBHOOK_CONFIGURATIONS.resource) throw new Error("forbidden");
    return false;
  };
  const world = await setUp(["a"], refuse, "ctrlmesh-system");
  await world.clock.advance(1_000);
  expect(world.condition("a", "Ready")).toBeDefined();
  expect(world.condition("a", "InjectionReady")).toBeUndefined();
  isRefused = false;
  await world.clock.advance(120_000);
  expect(world.condition("a", "InjectionReady")).toMatchObject({ status: "False", reason: "WebhookPending" });
  await world.stop();
});

it("follows the Services of an app with webhooks, in the condition WebhookIntercepted", async () => {
  const world = await setUp(["a"], () => false);
  const app = world.read("a");
  if (app === undefined) throw new Error("no app");
  const env = Object.entries({ CTRLMESH_WEBHOOK_PORT: "9443", CTRLMESH_WEBHOOK_CERT_DIR: "/var/run/ctrlmesh/webhook" });
  const operator = {
    name: "operator",
    ports: [{ name: "webhook", containerPort: 5445 }],
    volumeMounts: [{ name: "certs", mountPath: "/certs" }],
  };
  const proxy = { name: "ctrlmesh-proxy", env: env.map(([name, value]) => ({ name, value })) };
  const spec = { containers: [operator], initContainers: [proxy], volumes: [{ name: "certs", secret: {} }] };
  world.client.put(PODS, { metadata: { namespace: "ops", name: "p", labels: { [INJECTED_LABEL]: "a", app: "a" } }, spec });
  const service = (targetPort: number | string) =>
    world.client.put(SERVICES, {
      metadata: { namespace: "ops", name: "hooks" },
      spec: { selector: { app: "a" }, ports: [{ port: 443, targetPort }] },
    });
  service("webhook");
  await world.clock.advance(1_000);
  expect(world.client.calls.some(({ resource }) => resource === SERVICES.resource)).toBe(false);
  const configuration = { ...app.spec.configuration, webhook: { certDir: "/certs", port: 9443 } };
  world.client.put<VirtualApp>(VIRTUAL_APPS, {
    ...app,
    spec: { ...app.spec, configuration },
    metadata: { ...app.metadata, generation: 2 },
  });
  await world.clock.advance(1_000);
  expect(world.condition("a", "WebhookIntercepted")).toMatchObject({ status: "True", reason: "Intercepted" });
  service(9443);
  await world.clock.advance(1_000);
  expect(world.condition("a", "WebhookIntercepted")).toMatchObject({ status: "False", reason: "NumericTargetPort" });
  await world.stop();
});

it("writes InjectionReady alone while the pods are not listed", async () => {
  const refuse = ({ verb, resource }: FakeCall) => {
    if (verb === "list" && resource === "pods") throw new Error("forbidden");
    return false;
  };
  const world = await setUp(["a"], refuse, "ctrlmesh-system");
  await world.clock.advance(1_000);
  expect(world.condition("a", "InjectionReady")).toMatchObject({ status: "False", reason: "WebhookPending" });
  expect(world.condition("a", "Ready")).toBeUndefined();
  await world.stop();
});

it("reports in Ready that the pods of the manager's namespace are never injected", async () => {
  const world = await setUp(["a"], () => false, "ops");
  await world.clock.advance(1_000);
  expect(world.condition("a", "Ready")?.message).toContain("; pods in the manager's own namespace are never injected");
  await world.stop();
});
