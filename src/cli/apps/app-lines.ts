// An app as lines: what it is, its subsets, what moves and who is waited for. Pure. Each fact is from the status.
import type { AppStatus, HandoverStatus } from "../../api/app-status.ts";
import { columns, counted } from "../frame/output.ts";
import { age } from "./ages.ts";
import { conditionOf, type FoundApp, isPaused } from "./apps.ts";

export function appLines(app: FoundApp, nowMs: number): string[] {
  const { kind, object } = app;
  const { metadata, status } = object;
  const title = `${kind.resource.kind} ${metadata.namespace}/${metadata.name}`;
  if (status === undefined) return [`${title}: no status yet; is ctrlmesh-manager running?`];
  return [
    `${title}: ${readyText(app)}`,
    ...subsetLines(status),
    ...(isPaused(app)
      ? [`  paused by its spec: no namespace moves until: ctrlmesh resume ${metadata.name} -n ${metadata.namespace}`]
      : []),
    ...(status.handover === undefined ? [] : handoverLines(status.handover, nowMs)),
    ...restartLines(status, nowMs),
    ...problemLines(app),
  ];
}

function readyText(app: FoundApp): string {
  const ready = conditionOf(app, "Ready");
  const { proxies, namespaces } = app.object.status ?? {};
  const isCurrent = ready?.observedGeneration === app.object.metadata.generation;
  const state = ready?.status === "True" ? "ready" : ready?.status === "False" ? "not ready" : "not known yet";
  const parts = [
    `${isCurrent ? state : "not known yet for the last edit"} (${ready?.reason ?? "no condition"})`,
    ...(proxies === undefined ? [] : [`${proxies.synced} of ${proxies.total} proxies in sync`]),
    ...(namespaces === undefined ? [] : [`${counted(namespaces.total, "namespace")}, ${namespaces.moving} moving`]),
  ];
  return parts.join(", ");
}

function subsetLines({ subsets = [] }: AppStatus): string[] {
  const rows = subsets.map(({ name, namespaces, readyPods, pods, lock, leader, reason }) => [
    name,
    counted(namespaces, "namespace"),
    `${readyPods}${pods === undefined ? "" : ` of ${pods}`} pods ready`,
    lock === undefined ? "no lock" : `lock ${lock}: ${leader ?? "nobody leads"}`,
    reason ?? "",
  ]);
  return columns(rows, "  ").map((line) => line.trimEnd());
}

function handoverLines(
  { phase, from, to, namespaces, since, done, total, waitingOn = [] }: HandoverStatus,
  nowMs: number,
): string[] {
  const what = namespaces === undefined ? "resources" : counted(namespaces, "namespace");
  const between = from === undefined || to === undefined ? "" : ` from ${from} to ${to}`;
  const verb = phase === "Paused" ? "kept" : "moving";
  const waits = waitingOn.map(({ namespace = "", pod = "", reason, since: began }) => [
    "waits for",
    pod === "" ? "-" : `pod ${pod}`,
    `${reason} for ${age(began, nowMs)}`,
    namespace === "" ? "" : `for example namespace ${namespace}`,
  ]);
  const head = `  ${verb}: ${what}${between}, ${phase} for ${age(since, nowMs)}, ${done} of ${total} pods are through`;
  return [head, ...columns(waits, "    ").map((line) => line.trimEnd())];
}

function restartLines({ restart }: AppStatus, nowMs: number): string[] {
  if (restart === undefined) return [];
  const { subset, pod, reason, message, left, since } = restart;
  return [
    `  restarts pod ${pod} of subset ${subset}: ${reason} for ${age(since, nowMs)}, ${counted(left, "pod")} left`,
    ...(message === undefined ? [] : [`    ${message}`]),
  ];
}

/** The conditions that are not true, each with its remedy. Ready comes first and sums the others up, so it is left out beside them. */
function problemLines({ object: { status } }: FoundApp): string[] {
  const bad = (status?.conditions ?? []).filter(({ status: is }) => is === "False");
  const others = bad.filter(({ type }) => type !== "Ready");
  return (others.length > 0 ? others : bad).map(({ type, reason, message }) => `  ${type} is False (${reason}): ${message}`);
}
