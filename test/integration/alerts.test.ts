// Each alert of the chart, judged by promtool: series over which it fires, and the nearest ones over which it does not.
import { readFileSync } from "node:fs";
import { beforeAll, describe, expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import { type AlertCase, type AlertRules, chartAlerts, judgeAlert, type Labels } from "../support/alert-rules.ts";
import { helmTemplate } from "../support/helm.ts";
import { describeWithProgram, describeWithPrometheus } from "../support/requirements.ts";
import { anchorsOf } from "../support/tree-map.ts";

const RULES = chartAlerts();
const OPS = { namespace: "ops" };
const APP = { kind: "VirtualApp", namespace: "ops", name: "shop" };
const BREAKER = { kind: "CircuitBreaker", namespace: "ops", name: "guard" };
const CLUSTER = { kind: "MeshCluster", namespace: "ops", name: "eu-1" };

const series = (metric: string, labels: Labels, values: string): Labels => {
  const pairs = Object.entries({ pod: "a", ...labels }).map(([key, value]) => `${key}="${value}"`);
  return { [`${metric}{${pairs.join(",")}}`]: values };
};
const condition = (object: Labels, type: string, status: string, reason: string, values = "1x120") =>
  series("ctrlmesh_manager_condition", { ...object, type, status, reason }, values);
const isApp = condition(APP, "Accepted", "True", "Valid");
const notReady = (reason: string, values?: string) => condition(APP, "Ready", "False", reason, values);
const proxies = (state: string, values: string) => series("ctrlmesh_manager_proxies", { ...APP, subset: "v2", state }, values);
const writer = (values: string) => series("ctrlmesh_manager_no_writer_now_seconds", APP, values);
const perMinute = (metric: string, labels: Labels, count: number) => series(metric, { ...OPS, ...labels }, `0+${count}x60`);
const decisions = (reason: string, count: number) => perMinute("ctrlmesh_proxy_decisions_total", { reason }, count);
const reviews = (result: string, count: number) => perMinute("ctrlmesh_proxy_reviews_total", { result }, count);
const breaker = (values: string) => series("ctrlmesh_proxy_breaker_open", { ...OPS, rule: "guard/all" }, values);
/** Ends so many hours after the first value. */
const expiry = (name: string, hours: number) =>
  series("ctrlmesh_certificate_expiry_timestamp_seconds", { ...OPS, name }, `${hours * 3_600}x20`);
const errors = (values: string) =>
  series("controller_runtime_reconcile_errors_total", { controller: "webhook-configuration" }, values);

type Case = [title: string, given: readonly Labels[], at: string, fires?: Labels];
const fires = (title: string, given: readonly Labels[], at: string, labels: Labels): Case => [title, given, at, labels];
const silent = (title: string, given: readonly Labels[], at: string): Case => [title, given, at];

const CASES: Readonly<Record<string, readonly Case[]>> = {
  CtrlmeshNoLeader: [
    fires("no replica has led for two minutes", [series("ctrlmesh_manager_leader", {}, "1 0 0 0")], "3m", {}),
    fires("no replica runs", [], "2m", {}),
    silent(
      "one of two leads",
      [{ ...series("ctrlmesh_manager_leader", {}, "0x9"), 'ctrlmesh_manager_leader{pod="b"}': "1x9" }],
      "5m",
    ),
    silent("another one leads after a minute", [series("ctrlmesh_manager_leader", {}, "1 0 0 1")], "3m"),
  ],
  CtrlmeshWriterMissing: [
    fires("nobody can write for more than a minute", [writer("0 30 61")], "2m", APP),
    fires("nobody has been able to write for a day", [writer("86400")], "0m", APP),
    silent("nobody can write for a minute", [writer("0 30 60")], "2m"),
    silent("somebody can write again", [writer("30 90 0")], "2m"),
  ],
  CtrlmeshSubsetWithoutPods: [
    fires("a subset has no ready pod for five minutes", [isApp, notReady("SubsetWithoutPods")], "5m", APP),
    silent("its pod is ready after four", [isApp, notReady("SubsetWithoutPods", "1x3 stale")], "6m"),
    silent("another member of a family has no pods, which the family's status says", [notReady("SubsetWithoutPods")], "6m"),
  ],
  CtrlmeshNotReady: [
    fires("an app is not ready for ten minutes", [isApp, notReady("LockDenied")], "10m", APP),
    fires("the reason changes", [isApp, notReady("NotIntercepted", "1x5 stale"), notReady("Settling", "_x5 1x9")], "11m", APP),
    silent("it is ready after nine", [isApp, notReady("LockDenied", "1x8 stale")], "11m"),
    silent("it is ready", [isApp, condition(APP, "Ready", "True", "InSync")], "11m"),
    silent("a member of a family is not ready", [notReady("ProxiesBehind")], "11m"),
    silent(
      "a policy is not in force",
      [condition(BREAKER, "Accepted", "True", "Valid"), condition(BREAKER, "Ready", "False", "NoEgress")],
      "11m",
    ),
    silent("CtrlmeshWriterMissing fires", [isApp, notReady("WriteInFlight"), writer("70+60x20")], "11m"),
    ...["SubsetWithoutPods", "OwnershipConflict", "SnapshotRefused", "ProxyLost"].map((reason) =>
      silent(`another alert is about ${reason}`, [isApp, notReady(reason)], "11m"),
    ),
  ],
  CtrlmeshFrozenForLong: [
    fires("a namespace is frozen for a day", [series("ctrlmesh_manager_frozen_namespaces", APP, "1x1500")], "24h", APP),
    silent("it is thawed in the evening", [series("ctrlmesh_manager_frozen_namespaces", APP, "1x600 0x900")], "25h"),
  ],
  CtrlmeshOwnershipConflict: [
    fires("pods may write to namespaces of others", [series("ctrlmesh_manager_conflicting_namespaces", APP, "2x9")], "5m", APP),
    fires("a pod has the sidecar of another app", [isApp, notReady("OwnershipConflict")], "5m", APP),
    silent("no pod may", [series("ctrlmesh_manager_conflicting_namespaces", APP, "0x9"), isApp, notReady("LockDenied")], "6m"),
    silent("no pod may after four minutes", [series("ctrlmesh_manager_conflicting_namespaces", APP, "2 2 2 2 0x9")], "6m"),
  ],
  CtrlmeshClusterNotEnforced: [
    fires("a pod goes around the mesh", [condition(CLUSTER, "Enforced", "False", "PodsNotEnforcing")], "10m", CLUSTER),
    fires("a cluster has two names", [condition(CLUSTER, "Identified", "False", "AlreadyKnown")], "10m", CLUSTER),
    fires("nobody knows its namespaces", [condition(CLUSTER, "NamespacesWatched", "False", "Forbidden")], "10m", CLUSTER),
    silent("no app divides it", [condition(CLUSTER, "Enforced", "Unknown", "NotDivided")], "11m"),
    silent("it has one writer", [condition(CLUSTER, "Enforced", "True", "OneOwner")], "11m"),
  ],
  CtrlmeshClusterCredentialsEnd: [
    fires("a token ends in some days", [condition(CLUSTER, "CredentialsValid", "False", "ExpiringSoon")], "10m", CLUSTER),
    fires("a certificate has ended", [condition(CLUSTER, "CredentialsValid", "False", "Expired")], "10m", CLUSTER),
    silent("none ends soon", [condition(CLUSTER, "CredentialsValid", "True", "Valid")], "11m"),
    silent("none is known", [condition(CLUSTER, "CredentialsValid", "Unknown", "NotKnown")], "11m"),
  ],
  CtrlmeshSnapshotRejected: [
    fires("a sidecar refuses its routes", [proxies("rejected", "1x9")], "5m", { ...APP, subset: "v2" }),
    silent("a sidecar is pending", [proxies("pending", "1x9"), proxies("rejected", "0x9")], "6m"),
  ],
  CtrlmeshBreakerOpen: [
    fires("a breaker has been open for half an hour", [breaker("1x40")], "30m", { ...OPS, rule: "guard/all" }),
    fires("it opens every ten minutes", [breaker("1 0x8 1 0x8 1 0x8 1 0x8")], "35m", { ...OPS, rule: "guard/all" }),
    silent("it was open for a quarter of an hour", [breaker("1x14 0x40")], "40m"),
  ],
  CtrlmeshPolicyBehind: [
    fires(
      "a sidecar does not enforce the newest rules",
      [condition(BREAKER, "Synced", "False", "ProxiesBehind")],
      "15m",
      BREAKER,
    ),
    silent("one is disconnected", [condition(BREAKER, "Synced", "Unknown", "ProxyDisconnected")], "16m"),
    silent(
      "CtrlmeshPolicyInvalid fires",
      [condition(BREAKER, "Synced", "False", "ProxiesBehind"), condition(BREAKER, "Accepted", "False", "TooManyRules")],
      "16m",
    ),
  ],
  CtrlmeshPolicyInvalid: [
    fires("a policy is invalid", [condition(BREAKER, "Accepted", "False", "Invalid")], "5m", BREAKER),
    silent("an app is invalid", [condition(APP, "Accepted", "False", "Invalid")], "6m"),
    silent("a policy has ended", [condition(BREAKER, "Accepted", "True", "Expired")], "6m"),
  ],
  CtrlmeshManyRequestsRefused: [
    fires("a policy refuses a fourth", [decisions("limited", 15), decisions("open", 10), decisions("", 75)], "26m", OPS),
    silent("a policy refuses 19 of 100", [decisions("limited", 19), decisions("", 81)], "26m"),
    silent("the owner of the namespace is another subset", [decisions("other-subset", 25), decisions("", 75)], "26m"),
  ],
  CtrlmeshReviewsUnavailable: [
    fires("6 of 100 have no answer", [reviews("unavailable", 4), reviews("failed", 2), reviews("local", 94)], "10m", OPS),
    silent("4 of 100 have none", [reviews("unavailable", 4), reviews("local", 96)], "10m"),
  ],
  CtrlmeshWebhookCertificate: [
    fires("a sidecar has no certificate", [series("ctrlmesh_proxy_webhook_certificate_ready", OPS, "0x9")], "5m", OPS),
    silent("all have one", [series("ctrlmesh_proxy_webhook_certificate_ready", OPS, "0 0 1x9")], "7m"),
  ],
  CtrlmeshProxyDisconnected: [
    fires("a sidecar is disconnected", [proxies("disconnected", "1x15")], "10m", { ...APP, subset: "v2" }),
    silent("it is back after nine minutes", [proxies("disconnected", "1x8 0x9")], "12m"),
  ],
  CtrlmeshManagerAway: [
    fires("a sidecar finds no manager", [series("ctrlmesh_proxy_manager_connected", OPS, "0x20")], "15m", OPS),
    silent("it finds one after a quarter of an hour", [series("ctrlmesh_proxy_manager_connected", OPS, "0x14 1x9")], "16m"),
  ],
  CtrlmeshUpstreamErrors: [
    fires("seven errors a minute", [decisions("upstream", 4), decisions("internal", 3)], "16m", OPS),
    silent("five errors a minute", [decisions("upstream", 5)], "16m"),
  ],
  CtrlmeshCertificateNotRenewed: [
    fires("a serving certificate has less than 10 h", [expiry("serving", 10)], "11m", { ...OPS, name: "serving" }),
    fires("a CA has less than 72 h", [expiry("ca", 72)], "11m", { ...OPS, name: "ca" }),
    silent("the manager's certificate is due", [expiry("serving", 12)], "11m"),
    silent("it had less than 10 h for five minutes", [expiry("serving", 10)], "6m"),
    silent("a CA has 73 h", [expiry("ca", 73)], "11m"),
  ],
  CtrlmeshCertificateEnds: [
    fires("a serving certificate has less than 6 h", [expiry("serving", 6)], "11m", { ...OPS, name: "serving" }),
    fires("a CA has less than 24 h", [expiry("ca", 24)], "11m", { ...OPS, name: "ca" }),
    silent("a serving certificate has 7 h", [expiry("serving", 7)], "11m"),
    silent("a CA has 25 h", [expiry("ca", 25)], "11m"),
  ],
  CtrlmeshWebhooksNotWritten: [
    fires("writes fail for ten minutes", [errors("0+1x40")], "15m", {}),
    silent("one write failed", [errors("0 0 1x40")], "13m"),
    silent(
      "another controller fails",
      [series("controller_runtime_reconcile_errors_total", { controller: "app" }, "0+1x40")],
      "20m",
    ),
  ],
};

const titleOf = ([title, , , labels]: Case, name = "") =>
  `${name} ${labels === undefined ? "does not fire" : "fires"}: ${title}`.trim();

const judged = (rules: AlertRules, name: string, [, given, at, labels]: Case) => {
  const alertCase: AlertCase = { series: Object.assign({}, ...given), at, fires: labels };
  return judgeAlert(rules, name, alertCase);
};

it("each alert has cases in which it fires and in which it does not", () => {
  const alerts = RULES.groups.flatMap(({ rules }) => rules).map(({ alert }) => alert);
  expect(Object.keys(CASES).sort()).toEqual(alerts.sort());
  for (const cases of Object.values(CASES)) expect(new Set(cases.map((each) => each[3] === undefined)).size).toBe(2);
});

describeWithPrometheus("the alert", () => {
  describe.each(Object.keys(CASES))("%s", (name) => {
    for (const each of CASES[name] ?? []) {
      it(titleOf(each), () => judged(RULES, name, each));
    }
  });
});

describeWithPrometheus("the chart's limits for certificates", () => {
  const FEW_HOURS = `
monitoring: { prometheusRule: { enabled: true } }
identity: { certificateLifetime: 2h, certManager: { enabled: true, issuerRef: { name: ca }, duration: 40h, renewBefore: 10h } }
`;
  const ends = "CtrlmeshCertificateEnds";
  const notRenewed = "CtrlmeshCertificateNotRenewed";
  const serving = { ...OPS, name: "serving" };
  const ca = { ...OPS, name: "ca" };

  const cases: readonly [string, Case][] = [
    [notRenewed, silent("a serving certificate has an hour", [expiry("serving", 1)], "10m")],
    [notRenewed, fires("it has less than 50 min", [expiry("serving", 0.8)], "11m", serving)],
    [notRenewed, silent("the CA has 6 h", [expiry("ca", 6)], "11m")],
    [notRenewed, fires("the CA has less than half of renewBefore", [expiry("ca", 5)], "11m", ca)],
    [ends, silent("a serving certificate has 45 min", [expiry("serving", 0.75)], "11m")],
    [ends, fires("it has less than half an hour", [expiry("serving", 0.5)], "11m", serving)],
    [ends, silent("the CA has 3 h", [expiry("ca", 3)], "11m")],
    [ends, fires("the CA has less than a quarter of renewBefore", [expiry("ca", 2.5)], "11m", ca)],
  ];

  describeWithProgram("go", "with Helm", () => {
    let shortened: AlertRules;
    beforeAll(async () => {
      shortened = await renderedAlerts(FEW_HOURS);
    });

    for (const [name, each] of cases) it(titleOf(each, name), () => judged(shortened, name, each));

    it("are with runbooks at the page of the value, which has the anchors", async () => {
      const page = "https://docs.example.com/troubleshooting.md";
      const { groups } = await renderedAlerts(`monitoring: { prometheusRule: { enabled: true, runbookBaseUrl: "${page}" } }`);
      const anchors = anchorsOf(readFileSync(new URL("../../docs/troubleshooting.md", import.meta.url), "utf8"));
      for (const { annotations } of groups.flatMap(({ rules }) => rules)) {
        const [base, anchor = ""] = annotations.runbook_url?.split("#") ?? [];
        expect(base).toBe(page);
        expect(anchors).toContain(anchor);
      }
    });

    it("are those of the file by default", async () => {
      const expressions = ({ groups }: AlertRules) => groups.flatMap(({ rules }) => rules.map(({ expr }) => expr));
      const hours = (expr: string) => expr.replace(/(\d+) \* 3600/g, (_, count: string) => String(Number(count) * 3_600));
      const rendered = expressions(await renderedAlerts("monitoring: { prometheusRule: { enabled: true } }"));
      expect(rendered).toEqual(expressions(RULES).map(hours));
    });
  });
});

async function renderedAlerts(values: string): Promise<AlertRules> {
  const objects = parseAllDocuments(await helmTemplate(values)).map(
    (each) => each.toJS() as { kind: string; spec: AlertRules } | null,
  );
  const rule = objects.find((each) => each?.kind === "PrometheusRule");
  if (rule == null) throw new Error("no PrometheusRule");
  return rule.spec;
}
