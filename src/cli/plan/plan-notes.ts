// What to know before an edit, beside what it moves. Pure.
import type { AppStatus } from "../../api/app-status.ts";
import { fieldAt } from "../../api/rule.ts";
import { nameList } from "../../base/name-list.ts";
import type { App } from "../../manager/apps/app.ts";
import type { ChosenClusters } from "../../manager/apps/chosen-clusters.ts";
import { subsetDisplayName } from "../../mesh/ownership/words.ts";
import { readStatus } from "../apps/read-status.ts";
import { counted, shellLine } from "../frame/output.ts";
import type { InsideMove, UnknownInside } from "./inside-plan.ts";
import { type ClusterMove, clusterNotes } from "./moved-clusters.ts";
import type { Move } from "./moved-namespaces.ts";

/** The most names in a list. */
export const MAX_NAMES = 3;

interface PlannedMoves {
  readonly moves: readonly Move[];
  /** Of all namespaces. */
  readonly total: number;
  readonly clusterMoves: readonly ClusterMove[];
  readonly insideMoves: readonly InsideMove[];
  readonly insideUnknown: readonly UnknownInside[];
}

export function notesOf(before: App | undefined, after: App | undefined, planned: PlannedMoves): string[] {
  const { moves, total, clusterMoves, insideMoves } = planned;
  const spec = after?.spec;
  if (after === undefined || spec === undefined) return [];
  if (before?.spec === undefined)
    return ["is new to the manager: its namespaces get their owners once all of its pods have a sidecar"];
  const abroad = [...clusterNotes(clusterMoves), ...insideNotes(planned)];
  if (spec.isPaused) return [`is paused by ${after.words.pausedField}: nothing moves until it goes on`, ...abroad];
  if (moves.length + clusterMoves.length + insideMoves.length === 0) return abroad;
  const { maxMovingPercent: limit } = spec;
  const { status: stored } = readStatus(before.object.status);
  const moving = moves.reduce((sum, { namespaces }) => sum + namespaces.length, 0);
  const isOver = limit !== undefined && moving * 100 > limit * total;
  const keptAtHome = insideMoves.length === 0 ? "no namespace" : "no namespace at home";
  const kept = clusterMoves.length + insideMoves.length === 0 ? "nothing" : keptAtHome; // the limit is not about clusters
  return [
    ...(isOver
      ? [`is above ${after.words.maxMovingField} (${limit}): ${kept} moves until: ${commandFor("confirm", after)}`]
      : []),
    ...pauseNotes(before, after),
    ...abroad,
    ...(spec.retainsLosses && moves.length > 0 ? [restartText(moves, stored)] : []),
    ...(isMoving(stored) ? ["a move is running: the plan begins at what the stored spec asks for"] : []),
  ];
}

/** What is not known here of the namespaces in other clusters, and how to name it. */
function insideNotes({ insideUnknown }: PlannedMoves): string[] {
  const unlabelled = insideUnknown.flatMap(({ cluster, namespaces = [] }) =>
    namespaces.length === 0 ? [] : [`${namespaces.length} in ${cluster} (${nameList(namespaces, MAX_NAMES)})`],
  );
  const unnamed = insideUnknown.flatMap(({ cluster, namespaces }) => (namespaces === undefined ? [cluster] : []));
  const [first] = insideUnknown;
  return [
    ...(unlabelled.length === 0
      ? []
      : [`whether these namespaces move depends on their labels, which are not known here: ${nameList(unlabelled, MAX_NAMES)}`]),
    ...(unnamed.length === 0 ? [] : [`which namespaces move is not known here in: ${nameList(unnamed, MAX_NAMES)}`]),
    ...(first === undefined
      ? []
      : [`to plan these: kubectl get namespaces -o yaml in that cluster, and --inside ${first.cluster}=FILE`]),
  ];
}

/** `kubectl apply` keeps a field that somebody else has set, and that the file does not name. */
function pauseNotes(before: App, after: App): string[] {
  const { pausedField } = after.words;
  const isNamed = after.objects.some((object) => fieldAt(object, ...pausedField.split(".")) === false);
  if (before.spec?.isPaused !== true || isNamed) return [];
  return [
    `is paused now: if the files that were applied before have no ${pausedField}, it stays, and nothing moves until: ${commandFor("resume", after)}`,
  ];
}

/** Without them nothing moves, but the user may have misspelled the key. */
export function missingDecisionNotes(app: App | undefined, chosen: ChosenClusters): string[] {
  const missing = (app?.spec?.decisionKeys ?? []).filter((key) => !chosen.has(key));
  return missing.map(
    (key) => `clustersFrom: there is no PlacementDecision with the decision-key ${key}: clusters keep their owners`,
  );
}

function commandFor(command: string, { ref }: App): string {
  return shellLine(["ctrlmesh", command, ref.name, "-n", ref.namespace]);
}

function restartText(moves: readonly Move[], status: AppStatus | undefined): string {
  const losing = [...new Set(moves.map(({ from }) => from))];
  const pods = (status?.subsets ?? []).filter(({ name }) => losing.includes(subsetDisplayName(name)));
  const count = pods.reduce((sum, { pods: all = 0 }) => sum + all, 0);
  return `the pods that lose namespaces are restarted one after the other: ${counted(count, "pod")} of ${losing.join(", ")}`;
}

function isMoving(status: AppStatus | undefined): boolean {
  return status?.conditions?.some(({ type, status: value }) => type === "Converged" && value === "False") === true;
}
