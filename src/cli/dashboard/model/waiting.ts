// What waits, for whom, and since when. Pure: each line is a fact of a part. What is stuck comes first, then the longest wait.

import { frozenText } from "../../../mesh/ownership/frozen-places.ts";
import { counted } from "../../frame/output.ts";
import type { AppPart, Part, PolicyPart } from "./parts.ts";

export interface WaitingItem {
  readonly id: string;
  /** `stuck`: something is wrong. `waits`: it goes on by itself. `held`: a person, or a rule of one, has stopped it. */
  readonly urgency: "stuck" | "waits" | "held";
  /** KIND NAMESPACE/NAME */
  readonly subject: string;
  /** NAMESPACE/NAME of the app, for its map; undefined for a policy. */
  readonly app?: string | undefined;
  readonly what: string;
  readonly whom: string;
  readonly since?: string | undefined;
  readonly message?: string | undefined;
  /** The command that shows more, or ends the wait. */
  readonly next: readonly string[];
}

type Finding = Pick<WaitingItem, "urgency" | "what" | "whom" | "since" | "message"> & { readonly next?: readonly string[] };

export function waitingItems(parts: Iterable<Part>): WaitingItem[] {
  const items: WaitingItem[] = [];
  for (const part of parts) {
    if (part.part === "app")
      items.push(...itemsOf(part, appFindings(part), `${part.namespace}/${part.name}`, ["ctrlmesh", "status"]));
    if (part.part === "policy")
      items.push(...itemsOf(part, policyFindings(part), undefined, ["kubectl", "describe", part.kind.toLowerCase()]));
  }
  return items.sort((a, b) => rankOf(a) - rankOf(b) || startOf(a) - startOf(b) || (a.id < b.id ? -1 : 1));
}

function itemsOf(
  { kind, namespace, name }: AppPart | PolicyPart,
  findings: readonly Finding[],
  app: string | undefined,
  show: readonly string[],
): WaitingItem[] {
  const subject = `${kind} ${namespace}/${name}`;
  return findings.map(({ next = show, ...finding }) => ({
    id: `${subject} ${finding.what} ${finding.whom}`,
    subject,
    app,
    ...finding,
    next: [...next, name, "-n", namespace],
  }));
}

const URGENCIES: readonly WaitingItem["urgency"][] = ["stuck", "waits", "held"];

function rankOf({ urgency }: WaitingItem): number {
  return URGENCIES.indexOf(urgency);
}

function startOf({ since }: WaitingItem): number {
  const ms = Date.parse(since ?? "");
  return Number.isNaN(ms) ? Number.MAX_SAFE_INTEGER : ms;
}

function appFindings(app: AppPart): Finding[] {
  return [
    ...frozenFindings(app),
    ...handoverFindings(app),
    ...restartFindings(app),
    ...subsetFindings(app),
    ...proxyFindings(app),
    ...problemFindings(app),
  ];
}

function frozenFindings({ frozen }: AppPart): Finding[] {
  return frozen.map(({ cluster, namespace, reason }) => ({
    urgency: "held",
    what: `${frozenText({ cluster, namespace })} frozen`,
    whom: "a person, who thaws it",
    message: reason,
    next: ["ctrlmesh", "thaw", namespace, ...(cluster === undefined ? [] : ["--cluster", cluster]), "--app"],
  }));
}

function handoverFindings({ handover, isPaused }: AppPart): Finding[] {
  const resume = ["ctrlmesh", "resume"];
  const person = "a person, who has paused the app";
  if (handover === undefined)
    return isPaused ? [{ urgency: "held", what: "paused: no namespace moves", whom: person, next: resume }] : [];
  const { phase, from, to, namespaces, since, done, total, waitingOn = [] } = handover;
  const size = namespaces === undefined ? "resources" : counted(namespaces, "namespace");
  if (phase === "Paused")
    return [{ urgency: "held", what: `${size} kept with the present owner`, whom: person, since, next: resume }];
  const between = from === undefined || to === undefined ? "" : ` from ${from} to ${to}`;
  if (waitingOn.length === 0)
    return [
      {
        urgency: "waits",
        what: `${size} moving${between}`,
        whom: `${total - done} of ${counted(total, "pod")}: ${phase}`,
        since,
      },
    ];
  return waitingOn.map(({ namespace, pod, reason, since: began }) => ({
    urgency: "waits",
    what: namespace === undefined ? `${size} moving${between}` : `namespace ${namespace} moving${between}`,
    whom: pod === undefined ? reason : `pod ${pod}: ${reason}`,
    since: began,
  }));
}

function restartFindings({ restart, shards }: AppPart): Finding[] {
  const { rollout } = shards ?? {};
  const findings: Finding[] = [];
  if (restart !== undefined) {
    const { subset, pod, reason, message, left, since } = restart;
    findings.push({
      urgency: "waits",
      what: `restart of ${counted(left, "pod")} of ${subset}`,
      whom: `pod ${pod}: ${reason}`,
      since,
      message,
    });
  }
  if (rollout?.waitingFor !== undefined) {
    const { done, total, waitingFor, message } = rollout;
    findings.push({ urgency: "waits", what: `rollout, ${done} of ${counted(total, "pod")} done`, whom: waitingFor, message });
  }
  return findings;
}

function subsetFindings({ subsets }: AppPart): Finding[] {
  return subsets.flatMap(({ name, namespaces, readyPods, pods, waitingSince, reason }): Finding[] => {
    if (reason === undefined && waitingSince === undefined) return [];
    const ready = `${readyPods}${pods === undefined ? "" : ` of ${pods}`} pods ready`;
    const whom = reason === undefined ? "the handover" : `${reason}, ${ready}`;
    return [
      {
        urgency: reason === undefined ? "waits" : "stuck",
        what: `${name}, owner of ${counted(namespaces, "namespace")}`,
        whom,
        since: waitingSince,
      },
    ];
  });
}

function proxyFindings({ proxies }: AppPart): Finding[] {
  if (proxies?.awaySince === undefined) return [];
  const { total, connected, awaySince: since } = proxies;
  return [
    {
      urgency: "stuck",
      what: "routes for all pods",
      whom: `${total - connected} of ${counted(total, "pod")} without a connection to the manager`,
      since,
    },
  ];
}

/** What the handover says already is left out. */
function problemFindings({ problems, handover, unread }: AppPart): Finding[] {
  const shown = problems.filter(({ type }) => handover === undefined || type !== "Converged");
  const findings = shown.map(
    ({ type, reason, message, since }): Finding => ({ urgency: "stuck", what: `${type} is False`, whom: reason, since, message }),
  );
  if (unread.length === 0) return findings;
  return [
    ...findings,
    { urgency: "stuck", what: "a part of the status is not shown", whom: `another version has written: ${unread.join(", ")}` },
  ];
}

function policyFindings({ open, pods, problems, faultsSince, unread }: PolicyPart): Finding[] {
  const findings: Finding[] = problems.map(({ type, reason, message, since }) => ({
    urgency: "stuck",
    what: `${type} is False`,
    whom: reason,
    since,
    message,
  }));
  if (faultsSince !== undefined)
    findings.push({ urgency: "held", what: "injects faults", whom: "a person, who deletes it", since: faultsSince });
  const opened = Math.max(pods?.opened ?? 0, new Set(open.map(({ pod }) => pod)).size);
  if (opened > 0) {
    const since = open
      .map((each) => each.since ?? "")
      .filter((text) => text !== "")
      .sort()[0];
    const whom = "its time to be over, or a person, who recovers it";
    findings.push({
      urgency: "held",
      what: `breaker open in ${counted(opened, "pod")}`,
      whom,
      since,
      message: open[0]?.cause,
      next: ["ctrlmesh", "recover"],
    });
  }
  if (unread.length > 0)
    findings.push({
      urgency: "stuck",
      what: "a part of the status is not shown",
      whom: `another version has written: ${unread.join(", ")}`,
    });
  return findings;
}
