// The condition Converged: every namespace is owned and enforced as the spec of the observed generation says,
// and no step is left. Pure. Invariant: Converged is True only if every serving pod has acknowledged exactly
// these rules. So an edit that moves something never finds Converged True for the new generation.
import { annotationKey } from "../../api/annotations.ts";
import type { WaitingOn } from "../../api/app-status.ts";
import { isUnheard, type Wait } from "../../mesh/handover/plan-fences.ts";
import type { ProxyFacts } from "../../mesh/handover/proxy-facts.ts";
import { frozenText } from "../../mesh/ownership/frozen-places.ts";
import { countNamespaces } from "../../mesh/ownership/place-lists.ts";
import { thawText } from "../../mesh/ownership/words.ts";
import { closedClustersText, clusterMoves } from "./cluster-moves.ts";
import type { Counts } from "./counts.ts";
import {
  ageText,
  barePods,
  conditionOf,
  countText,
  isSynced,
  proxyOf,
  type StatusFacts,
  servingPods,
  type Verdict,
} from "./facts.ts";
import type { Handover } from "./handover.ts";
import { waitText } from "./waits.ts";

export const CONVERGED_REASONS = [
  "InSync",
  "Moving",
  "Rebuilding",
  "PodsWithoutProxy",
  "ProxiesBehind",
  "Restarting",
  "Paused",
  "ConfirmationRequired",
  "Dissolving",
  "Invalid",
  "NotPlaced",
  "NotFrozen",
] as const;

type ConvergedVerdict = Verdict<(typeof CONVERGED_REASONS)[number]>;

export function convergedVerdict(facts: StatusFacts, counts: Counts, { handover }: Handover): ConvergedVerdict {
  const [first] = facts.plan.waits;
  if (first !== undefined && facts.plan.waits.every(isUnheard)) return rebuilding(facts, first);
  if (handover !== undefined) return handoverVerdict(facts, counts, handover);
  const message = syncText(facts, counts);
  const behind = servingPods(facts).find((pod) => !isSynced(facts, pod));
  const [bare] = barePods(facts);
  // No handover waits for this pod, since the other subsets own their namespaces. But it may write there too.
  if (bare !== undefined && (counts.namespaces.conflicting ?? 0) > 0) {
    const what = `pod ${bare.name} carries no proxy and may write what other subsets own`;
    return { status: "False", reason: "PodsWithoutProxy", message: `${what}: restart it to have it injected` };
  }
  const abroad = clusterMoves(facts.plan);
  if (abroad !== undefined) return "unheard" in abroad ? rebuilding(facts, abroad.unheard) : abroad;
  if (behind === undefined) return unfrozenVerdict(facts) ?? unheldVerdict(facts) ?? inSync(facts, message);
  return {
    status: "False",
    reason: "ProxiesBehind",
    message: `${message}; pod ${behind.name} ${behindText(proxyOf(facts, behind))}`,
  };
}

/** A cluster that nobody can list, for example since it is down, must not hold up those who wait. */
function inSync({ plan }: StatusFacts, message: string): ConvergedVerdict {
  return { status: "True", reason: "InSync", message: message + closedClustersText(plan) };
}

function behindText(proxy: ProxyFacts | undefined): string {
  if (proxy?.connected !== true) return "is not connected";
  const writes = proxy.backlog.drainingWrites;
  return writes === 0 ? "is behind" : `has ${countText(writes, "write")} under way that its new route refuses`;
}

/** Also a pod that serves nothing more, or is gone, may have a write under way in a frozen namespace. */
function unfrozenVerdict(facts: StatusFacts): ConvergedVerdict | undefined {
  const { unfrozen = [] } = facts.plan;
  const pod = unfrozen.find((each) => !isUnheard(each)) ?? unfrozen[0];
  if (pod === undefined) return undefined;
  const { podName, cause, cluster } = pod;
  const what = `pod ${podName} may write in frozen namespaces${cluster === undefined ? "" : ` of cluster ${cluster}`}`;
  switch (cause) {
    case "unreported":
    case "just-listed":
      return rebuilding(facts, pod);
    case "no-proxy":
    case "older-proxy": {
      const known = cluster === undefined ? "freezes" : "freezes in other clusters";
      const lack = cause === "no-proxy" ? "no proxy" : `no proxy that knows ${known}`;
      return {
        status: "False",
        reason: "PodsWithoutProxy",
        message: `${what}, since it carries ${lack}: restart it to have it injected`,
      };
    }
    case "pod-gone": {
      const why = cluster === undefined ? "the API server may still accept its token" : "its last requests may still run";
      return { status: "False", reason: "ProxiesBehind", message: `${what}: it was removed, and ${why}` };
    }
    case "behind":
      return { status: "False", reason: "ProxiesBehind", message: `${what}: its proxy is behind` };
    default:
      return cause satisfies never;
  }
}

/** Otherwise a person would take the namespace for a frozen one. */
function unheldVerdict({ plan: { unheld = [], rules } }: StatusFacts): ConvergedVerdict | undefined {
  const [first] = unheld;
  const [{ app } = { app: undefined }] = rules.values();
  if (first === undefined || app === undefined) return undefined;
  const { cluster, namespace, interception } = first;
  const why =
    interception === undefined
      ? "the app divides no MeshCluster of this name"
      : `MeshCluster ${cluster} has interception ${interception}, and freezes need Terminate`;
  const more = unheld.length === 1 ? "" : `, nor are ${unheld.length - 1} more`;
  const thaw = thawText({ app, inside: cluster }, namespace);
  const message = `${frozenText(first)} is not frozen${more}: ${why}; to take the freeze back: ${thaw}`;
  return { status: "False", reason: "NotFrozen", message };
}

/** "4 of 5 proxies enforce route 17". */
export function syncText({ version }: StatusFacts, { proxies }: Counts): string {
  return `${proxies.synced} of ${proxies.total} proxies enforce route ${version}`;
}

function rebuilding(
  facts: StatusFacts,
  { podName, cause }: Pick<Wait, "podName"> & { readonly cause: string },
): ConvergedVerdict {
  const before = conditionOf(facts.previous, "Converged");
  const age = before?.reason === "Rebuilding" ? ageText(before.lastTransitionTime, facts.now) : "";
  const silentPod = facts.pods.find(({ name }) => name === podName);
  const isConnected = silentPod !== undefined && proxyOf(facts, silentPod)?.connected === true;
  const what =
    cause === "just-listed"
      ? "this manager does not know yet which pods were deleted in the seconds before it led"
      : `the proxy of pod ${podName} has not ${isConnected ? "reported its claims yet" : "connected yet"}`;
  const message = `${what}${age === "" ? "" : `, ${age}`}: nothing new is granted before`;
  return { status: "Unknown", reason: "Rebuilding", message };
}

function handoverVerdict(facts: StatusFacts, counts: Counts, handover: NonNullable<Handover["handover"]>): ConvergedVerdict {
  const status = "False";
  const { phase } = handover;
  const [row] = handover.waitingOn ?? [];
  const more = (handover.waitingOn?.length ?? 0) > 1 ? `; ${handover.total - handover.done} pods in all` : "";
  const moving = counts.namespaces.moving;
  switch (phase) {
    case "Draining": {
      if (row?.reason === "NoProxy") return { status, reason: "PodsWithoutProxy", message: noProxyText(facts, row) + more };
      return { status, reason: "Moving", message: drainingText(facts, moving, row) + more };
    }
    case "Granting": {
      const what = moving === 0 ? "the move is granted" : `${countText(moving, "namespace")} granted`;
      return { status, reason: "Moving", message: row === undefined ? what : `${what}: ${waitText(facts, row)}${more}` };
    }
    case "Restarting": {
      const podsLeft = handover.total - handover.done;
      const what =
        podsLeft === 0
          ? "namespaces have moved; the replacement of the last restarted pod is not ready yet"
          : `namespaces have moved, ${countText(podsLeft, "pod")} to restart`;
      return { status, reason: "Restarting", message: `${what}: ${restartText(facts, row)}` };
    }
    case "Paused":
      if (facts.plan.needsConfirmation) return { status, reason: "ConfirmationRequired", message: confirmationText(facts) };
      return { status, reason: "Paused", message: pausedText(facts) };
    case "Dissolving": {
      const what = `being deleted: ${handover.done} of ${countText(handover.total, "pod")} own everything again`;
      return { status, reason: "Dissolving", message: row === undefined ? what : `${what}; ${waitText(facts, row)}${more}` };
    }
    default:
      return phase satisfies never;
  }
}

function drainingText(facts: StatusFacts, moving: number, row: WaitingOn | undefined): string {
  if (row === undefined) return `${countText(moving, "namespace")} move`;
  // A resource that is partitioned by label moves as a whole, so there is no namespace to name.
  if (row.namespace === undefined)
    return waitText(facts, row, "resources").replace(/^resources waits/, "resources move between subsets as a whole: they wait");
  return `${moving === 1 ? "1 namespace moves" : `${moving} namespaces move`}: ${waitText(facts, row)}`;
}

function restartText({ restart, now }: StatusFacts, row: WaitingOn | undefined): string {
  const age = row === undefined ? "" : ageText(row.since, now);
  return `${restart?.message ?? `pod ${restart?.pod}`}${age === "" ? "" : ` (has waited for ${age.replace("over", "more than")})`}`;
}

function pausedText({ plan, restart, words }: StatusFacts): string {
  const stay =
    plan.kept === 1 ? "stays with another owner than the rules give it" : "stay with another owner than the rules give them";
  const keptTexts = plan.kept === 0 ? [] : [`${countText(plan.kept, "namespace")} ${stay}`];
  const leftTexts =
    restart === undefined ? [] : [`${countText(restart.left, "pod")} ${restart.left === 1 ? "waits" : "wait"} for a restart`];
  return `paused: ${[...keptTexts, ...leftTexts].join("; ")}; set ${words.pausedField} to false to go on`;
}

function confirmationText({ plan, generation, words }: StatusFacts): string {
  const inside = [...(plan.clusterTables?.values() ?? [])].reduce((sum, table) => sum + countNamespaces(table), 0);
  const all = countText(countNamespaces(plan.desired) + inside, "namespace");
  return `${plan.kept} of ${all} would move, which is more than ${words.maxMovingField}: they keep their owners until you confirm it with the annotation ${annotationKey("confirm-moves")}=${generation}, or take the edit back`;
}

function noProxyText(facts: StatusFacts, row: WaitingOn): string {
  const age = ageText(row.since, facts.now);
  return `pod ${row.pod} carries no proxy and may write everywhere${age === "" ? "" : `, ${age}`}: restart it to have it injected`;
}
