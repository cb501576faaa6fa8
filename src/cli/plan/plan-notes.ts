// What to know before an edit, beside what it moves. Pure.
import type { AppStatus } from "../../api/app-status.ts";
import { fieldAt } from "../../api/rule.ts";
import type { App } from "../../manager/apps/app.ts";
import type { ChosenClusters } from "../../manager/apps/chosen-clusters.ts";
import { subsetDisplayName } from "../../mesh/ownership/words.ts";
import { readStatus } from "../apps/read-status.ts";
import { counted, shellLine } from "../frame/output.ts";
import { type ClusterMove, clusterNotes } from "./moved-clusters.ts";
import type { Move } from "./moved-namespaces.ts";

interface PlannedMoves {
  readonly moves: readonly Move[];
  /** Of all namespaces. */
  readonly total: number;
  readonly clusterMoves: readonly ClusterMove[];
}

export function notesOf(before: App | undefined, after: App | undefined, planned: PlannedMoves): string[] {
  const { moves, total, clusterMoves } = planned;
  const spec = after?.spec;
  if (after === undefined || spec === undefined) return [];
  if (before?.spec === undefined)
    return ["is new to the manager: its namespaces get their owners once all of its pods have a sidecar"];
  const abroad = clusterNotes(clusterMoves);
  if (spec.isPaused) return [`is paused by ${after.words.pausedField}: nothing moves until it goes on`, ...abroad];
  if (moves.length === 0 && clusterMoves.length === 0) return [];
  const { maxMovingPercent: limit } = spec;
  const { status: stored } = readStatus(before.object.status);
  const moving = moves.reduce((sum, { namespaces }) => sum + namespaces.length, 0);
  const isOver = limit !== undefined && moving * 100 > limit * total;
  const kept = clusterMoves.length === 0 ? "nothing" : "no namespace"; // the limit is not about clusters
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
