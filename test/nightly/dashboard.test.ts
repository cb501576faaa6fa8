// Every query of the chart's dashboard and every alert, on a Prometheus that scrapes a mesh on the real control plane in which each feature is
// used: a panel without data would be a wrong name of a metric or of a label.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { stringify } from "yaml";
import { VIRTUAL_APPS } from "../../src/api/resources.ts";
import { type ChaosWebhooks, startChaosWebhooks } from "../chaos/webhooks.ts";
import { chartAlerts } from "../support/alert-rules.ts";
import { demoVirtualApp } from "../support/demo-app.ts";
import { eventually } from "../support/eventually.ts";
import { type HelloServer, startHelloServer } from "../support/hello-server.ts";
import { CHART } from "../support/helm.ts";
import { type Kube, startKube } from "../support/kube.ts";
import { WEBHOOK_SERVER } from "../support/mesh/pod.ts";
import { FOOS, type Mesh, type MeshPod, startMesh } from "../support/mesh.ts";
import { createProbe, type Probe } from "../support/probe.ts";
import { type PrometheusServer, type Sample, startPrometheus } from "../support/prometheus-server.ts";
import { describeWithKube, describeWithPrometheus } from "../support/requirements.ts";
import { sampleShardingConfig } from "../support/sharding-config.ts";
import { suspend } from "../support/suspend.ts";
import { getThroughTunnel } from "../support/tunnel.ts";

const NAMESPACE = "foo-system";
const PODS = ["foo-0", "foo-v2"];
const MAPS = "/api/v1/namespaces/team-a/configmaps";
const APP = { kind: "VirtualApp", namespace: NAMESPACE, name: "foo-operator" };
/** Metrics that a healthy mesh does not have. */
const OF_FAILURES = ["controller_runtime_reconcile_errors_total"];

interface Dashboard {
  readonly panels: readonly {
    readonly title: string;
    readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[];
  }[];
}

interface Query {
  readonly title: string;
  readonly expr: string;
  /** The labels that the legend shows. */
  readonly labels: readonly string[];
}

const { panels } = JSON.parse(readFileSync(join(CHART, "files/dashboard.json"), "utf8")) as Dashboard;
const queries: readonly Query[] = panels.flatMap(({ title, targets = [] }) =>
  targets.map(({ expr, legendFormat }) => ({
    title,
    expr: expr.replaceAll("$namespace", ".*"),
    labels: [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label = ""]) => label),
  })),
);
const expressions = [...queries, ...chartAlerts().groups.flatMap(({ rules }) => rules)].map(({ expr }) => expr);

/** Each metric of an expression, with the labels by which it is selected. */
function selectorsOf(expr: string): string[] {
  return [...expr.matchAll(/\b((?:ctrlmesh|controller_runtime|workqueue)_\w+)(?:\{([^}]*)\})?/g)].map(
    ([, metric, matchers = ""]) => {
      const labels = [...matchers.matchAll(/(\w+)(?:=~|!~|!=|=)"/g)].map(([, label]) => `${label}!=""`);
      return `${metric}{${labels.join(",")}}`;
    },
  );
}

const selector = { matchLabels: { component: APP.name } };
const rule = (resource: string, ...verbs: string[]) => ({ apiGroups: [""], resources: [resource], verbs, namespaces: ["*"] });
const policy = (kind: string, name: string, spec: object) =>
  stringify({ apiVersion: "ctrlmesh.kusionstack.io/v1alpha1", kind, metadata: { name, namespace: NAMESPACE }, spec });
const GUARD = policy("CircuitBreaker", "guard", {
  selector,
  rateLimitings: [
    {
      name: "deletes",
      resourceRules: [rule("pods", "delete")],
      bucket: { burst: 1, interval: "1h", limit: 1 },
      triggerPolicy: "Normal",
      recoverPolicy: { type: "SleepingWindow", sleepingWindowSize: "1h" },
    },
  ],
});
const DELAY = policy("FaultInjection", "late", {
  selector,
  httpFault: [{ name: "late", match: { resources: [rule("configmaps", "get")] }, delay: { fixedDelay: "10ms", percent: "100" } }],
});

const LIMIT = stringify({
  apiVersion: "ctrlmesh.kruise.io/v1alpha1",
  kind: "TrafficPolicy",
  metadata: { name: "limit", namespace: NAMESPACE },
  spec: {
    targetVirtualApps: [{ name: APP.name }],
    rateLimiting: { ratePolicies: [{ rules: { resourceRules: [rule("secrets", "list")] }, bucket: { qps: 9, burst: 9 } }] },
  },
});
/** Two shards without pods. The status of the family is that of the first. */
const FAMILY = ["east", "west"].map((name) =>
  stringify({
    ...sampleShardingConfig({ selector: { matchLabels: { shard: name } } }),
    metadata: { name, namespace: NAMESPACE },
  }),
);

describeWithPrometheus("the dashboard", () => {
  describeWithKube("of a mesh in which each feature is used", () => {
    let kube: Kube;
    let mesh: Mesh;
    let webhooks: ChaosWebhooks;
    let server: HelloServer;
    let pods: MeshPod[] = [];
    let probe: Probe;
    let prometheus: PrometheusServer;
    let round = 0;

    beforeAll(async () => {
      kube = await startKube({ controllerManager: true });
      server = await startHelloServer();
      mesh = await startMesh({ kube, identity: true, managers: 2 });
      webhooks = await startChaosWebhooks(mesh, PODS, Math.random);
      for (const name of ["team-a", "team-moves"]) await mesh.createNamespace(name);
      await mesh.apply(demoVirtualApp({ webhook: WEBHOOK_SERVER }));
      await mesh.apply(demoVirtualApp({ name: "without-pods" }));
      for (const object of [GUARD, DELAY, LIMIT, ...FAMILY]) await mesh.apply(object);
      pods = [];
      for (const [at, name] of PODS.entries()) {
        const labels = { version: at === 0 ? "v1" : "v2", component: APP.name };
        pods.push(await mesh.addPod({ name, labels, operator: true, egress: at === 0, webhooks: webhooks.ofPod(name) }));
      }
      const [first] = pods as [MeshPod];
      probe = createProbe({ url: first.proxyUrl, caPem: first.proxyCaPem, token: kube.token });
      await webhooks.register();
      prometheus = await startPrometheus([
        ...mesh.managers.map(({ child }) => ({
          job: "manager" as const,
          url: String(child.ready.health),
          namespace: "ctrlmesh-system",
          pod: child.name,
        })),
        ...pods.map(({ healthUrl, name }) => ({ job: "sidecars" as const, url: healthUrl, namespace: NAMESPACE, pod: name })),
      ]);
    });
    afterAll(async () => {
      await prometheus?.stop();
      await probe?.close();
      await mesh?.stop();
      await webhooks?.stop();
      await kube?.stop();
      server?.close();
    });

    const move = (toCanary: boolean) => mesh.labelNamespace("team-moves", { "ns-type": toCanary ? "canary-1" : null });

    async function useEachFeature(): Promise<void> {
      await move(round++ % 2 === 0);
      await probe.get("/api/v1/pods");
      await probe.get("/api/v1/pods?watch=1&timeoutSeconds=1");
      await probe.get(`${MAPS}/none`);
      for (let at = 0; at < 2; at++) await probe.send("DELETE", "/api/v1/namespaces/team-a/pods/none");
      await getThroughTunnel(pods[0]?.egressUrl ?? "", `localhost:${server.port}`, server.ca);
      const foo = { metadata: { namespace: "team-a", name: `foo-${round}` } };
      await mesh.client.create(FOOS, foo, { dryRun: true });
    }

    async function missingIn({ title, expr, labels }: Query): Promise<string[]> {
      const samples = await prometheus.query(expr);
      if (samples.length === 0) return [title];
      const absent = labels.filter((label) => samples.every((sample) => (sample.labels[label] ?? "") === ""));
      return absent.map((label) => `${title}: ${label}`);
    }

    it("has no query without data", async () => {
      await eventually(
        async () => {
          await useEachFeature();
          const missing = await Promise.all(queries.map(missingIn));
          expect(missing.flat()).toEqual([]);
        },
        { withinMs: 60_000, everyMs: 500 },
      );
      expect(queries.length).toBeGreaterThan(30);
    });

    it("selects metrics and labels that exist, as the alerts do, which are about the objects", async () => {
      const missing = [];
      for (const each of new Set(expressions.flatMap(selectorsOf))) {
        if ((await prometheus.query(`count(${each})`)).length === 0) missing.push(each.split("{")[0]);
      }
      expect(missing).toEqual(OF_FAILURES);
      const { alerts, problems } = await prometheus.rules();
      expect(problems).toEqual([]);
      const unready = alerts.filter(({ alertname }) => alertname === "CtrlmeshNotReady");
      expect(unready.map(({ kind, namespace, name }) => `${kind} ${namespace}/${name}`).toSorted()).toEqual([
        `ShardingConfig ${NAMESPACE}/east`,
        `VirtualApp ${NAMESPACE}/without-pods`,
      ]);
    });

    it("has the conditions of each kind, and of a family's members their own", async () => {
      const ofApp = ["Accepted", "Converged", "LockPermitted", "Ready", "TrafficIntercepted"];
      const ofPolicy = ["Accepted", "Open", "Ready", "Synced"];
      const expected = {
        [`VirtualApp ${NAMESPACE}/${APP.name}`]: [...ofApp, "WebhookIntercepted"].toSorted(),
        [`VirtualApp ${NAMESPACE}/without-pods`]: ofApp,
        [`ShardingConfig ${NAMESPACE}/east`]: ["Balanced", ...ofApp].toSorted(),
        [`ShardingConfig ${NAMESPACE}/west`]: ["Ready"],
        [`TrafficPolicy ${NAMESPACE}/limit`]: ofPolicy,
        [`CircuitBreaker ${NAMESPACE}/guard`]: ofPolicy,
        [`FaultInjection ${NAMESPACE}/late`]: ["Active", ...ofPolicy].toSorted(),
      };
      await eventually(async () => {
        const samples = await prometheus.query("ctrlmesh_manager_condition");
        const keyOf = ({ labels: { kind, namespace, name } }: Sample) => `${kind} ${namespace}/${name}`;
        const types = (of: readonly Sample[] = []) => of.map(({ labels }) => labels.type).toSorted();
        const byObject = Object.entries(Object.groupBy(samples, keyOf));
        expect(Object.fromEntries(byObject.map(([key, of]) => [key, types(of)]))).toEqual(expected);
      });
    });

    it("shows for how long nobody can write while a proxy that loses a namespace hangs, and 0 afterwards", async () => {
      const shown = async (title: string) => {
        const [sample] = await prometheus.query(queries.find((query) => query.title === title)?.expr ?? "");
        return sample?.value ?? -1;
      };
      const noWriter = () => shown("Nobody can write now");
      await move(false);
      await eventually(async () => {
        const { status } = await mesh.client.get(VIRTUAL_APPS, APP);
        expect(status).toMatchObject({ subsets: [{}, { name: "v2", namespaces: 0 }] });
        expect(status?.handover).toBeUndefined();
      }, 20_000);
      const resume = suspend(pods[0]?.proxy.pid ?? 0);
      try {
        await move(true);
        await eventually(async () => expect(await noWriter()).toBeGreaterThan(5), 30_000);
        expect(await shown("Sidecars out of sync")).toBeGreaterThan(0);
        expect(await shown("Apps that are not ready")).toBe(2);
      } finally {
        resume();
      }
      await eventually(async () => expect(await noWriter()).toBe(0), 30_000);
    });
  });
});
