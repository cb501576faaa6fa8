// An app as lines: what it is, its subsets, what moves and who is waited for. Pure. Each fact is from the status.
import type { AppStatus, HandoverStatus } from "../../api/app-status.ts";
import { frozenText } from "../../mesh/ownership/frozen-places.ts";
import { columns, counted, shellLine } from "../frame/output.ts";
import { age } from "./ages.ts";
import { conditionOf, type FoundApp, frozenIn, mayBeUnheld, pausedObjects } from "./apps.ts";
import { type ClusterState, clusterLines } from "./cluster-states.ts";

/** A wait that may not end by itself. */
const LONG_WAIT_MS = 30_000;

export interface ShownApp extends FoundApp {
  /** The other clusters that it divides. Absent: not asked for. */
  readonly clusters?: readonly ClusterState[];
}

/** @param access the flags with which kubectl asks the same cluster */
export function appLines(app: ShownApp, access: readonly string[], nowMs: number): string[] {
  const { kind, name, namespace, status, unread } = app;
  const title = `${kind.resource.kind} ${namespace}/${name}`;
  const resume = shellLine(["ctrlmesh", "resume", name, "-n", namespace, ...access]);
  const paused = pausedObjects(app).length > 0 ? [`  paused by its spec: no namespace moves until: ${resume}`] : [];
  const odd = unread.length > 0 ? [`  not shown, since another version has written it: ${unread.join(", ")}`] : [];
  const frozen = frozenIn(app).map(
    (each) => `  ${mayBeUnheld(app, each) ? "maybe not frozen, see Converged" : "frozen"}: ${frozenText(each)}: ${each.reason}`,
  );
  const stopped = [...paused, ...frozen];
  if (status === undefined) return [`${title}: no status yet; is ctrlmesh-manager running?`, ...stopped, ...odd];
  return [
    `${title}: ${readyText(app)}`,
    ...subsetLines(status),
    ...stopped,
    ...(status.handover === undefined ? [] : handoverLines(status.handover, nowMs)),
    ...restartLines(status, nowMs),
    ...clusterLines(name, app.clusters ?? [], nowMs),
    ...problemLines(status),
    ...odd,
  ];
}

const READY_WORDS: Readonly<Record<string, string>> = { True: "ready", False: "not ready" };

function readyText(app: FoundApp): string {
  const ready = conditionOf(app, "Ready");
  const { proxies, namespaces } = app.status ?? {};
  const isCurrent = ready?.observedGeneration === app.object.metadata.generation;
  const state = READY_WORDS[ready?.status ?? ""] ?? "not known yet";
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
  const remedies = waitingOn.flatMap(({ reason, since: began }) =>
    nowMs - Date.parse(began) < LONG_WAIT_MS ? [] : [`docs/reference/status.md#${reason.toLowerCase()}`],
  );
  const help = remedies.length === 0 ? [] : [`    what helps: ${[...new Set(remedies)].join(", ")}`];
  return [head, ...columns(waits, "    ").map((line) => line.trimEnd()), ...help];
}

function restartLines({ restart }: AppStatus, nowMs: number): string[] {
  if (restart === undefined) return [];
  const { subset, pod, reason, message, left, since } = restart;
  return [
    `  restarts pod ${pod} of subset ${subset}: ${reason} for ${age(since, nowMs)}, ${counted(left, "pod")} left`,
    ...(message === undefined ? [] : [`    ${message}`]),
  ];
}

/** The conditions that are not true, each with its remedy. Ready sums the others up, so it is left out beside them. */
function problemLines({ conditions = [] }: AppStatus): string[] {
  const bad = conditions.filter(({ status }) => status === "False");
  const others = bad.filter(({ type }) => type !== "Ready");
  return (others.length > 0 ? others : bad).map(({ type, reason, message }) => `  ${type} is False (${reason}): ${message}`);
}
