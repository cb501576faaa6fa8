// What `ctrlmesh plan` prints. Pure. Invariant: the number of lines does not grow with the number of namespaces.
import { MESH_CLUSTERS } from "../../api/resources.ts";
import { nameList } from "../../base/name-list.ts";
import { columns, counted } from "../frame/output.ts";
import type { PlannedCluster } from "./edited-clusters.ts";
import type { InsideMove } from "./inside-plan.ts";
import { type ClusterMove, clusterText } from "./moved-clusters.ts";
import type { Edits, Plan, PlannedApp } from "./plan-edits.ts";
import { MAX_NAMES } from "./plan-notes.ts";

/** The rows with the most namespaces, of all other clusters together. */
const MAX_INSIDE_ROWS = 20;

export function planLines({ apps, clusters }: Plan, edits: Edits): string[] {
  return [...clusters.flatMap(clusterLines), ...(apps.length === 0 ? [noAppText(edits)] : apps.flatMap(linesOf))];
}

function clusterLines({ namespace, name, problems, notes }: PlannedCluster): string[] {
  const title = `${MESH_CLUSTERS.kind} ${namespace}/${name}`;
  if (problems.length > 0) return [`${title}: would be refused`, ...problems.map((problem) => `  ${problem}`)];
  return notes.map((note) => `${title}: would not be accepted: ${note}`);
}

function noAppText({ namespaces, clusters, deletedClusters, decisions }: Edits): string {
  if (decisions.length > 0) return "nothing moves: no app of the namespace follows the PlacementDecision";
  const isAboutLabels = namespaces.length > 0 && clusters.length + deletedClusters.length === 0;
  return `nothing moves: no app ${isAboutLabels ? "goes by the labels of namespaces" : "of the namespace divides clusters"}`;
}

function linesOf(app: PlannedApp): string[] {
  const { kind, namespace, name, problems, moves, clusterMoves, insideMoves, notes } = app;
  const title = `${kind} ${namespace}/${name}`;
  if (problems.length > 0) return [`${title}: would be refused`, ...problems.map((problem) => `  ${problem}`)];
  const parts = summaryOf(app);
  const rows = moves.map(({ from, to, namespaces }) => [
    `${from} -> ${to}`,
    String(namespaces.length),
    nameList(namespaces, MAX_NAMES),
  ]);
  return [
    `${title}: ${parts.length === 0 ? "nothing moves" : parts.join(", ")}`,
    ...columns(rows, "  "),
    ...columns(clusterRows(clusterMoves), "  "),
    ...insideLines(insideMoves),
    ...notes.map((note) => `  ${note}`),
  ];
}

function summaryOf({ moves, total, clusterMoves, clusterTotal, insideMoves, insideTotal }: PlannedApp): string[] {
  const countOf = (each: readonly { readonly namespaces: readonly string[] }[]) =>
    each.reduce((sum, { namespaces }) => sum + namespaces.length, 0);
  const [moving, inside] = [countOf(moves), countOf(insideMoves)];
  const abroad = new Set(clusterMoves.map(({ cluster }) => cluster)).size;
  const verb = (count: number) => (count === 1 ? "moves" : "move");
  return [
    ...(moving === 0 ? [] : [`${moving} of ${counted(total, "namespace")} ${verb(moving)}`]),
    ...(abroad === 0
      ? []
      : [`${abroad} of ${counted(clusterTotal, "cluster")} ${abroad === 1 ? "gets another owner" : "get other owners"}`]),
    ...(inside === 0 ? [] : [`${inside} of ${counted(insideTotal, "namespace")} in other clusters ${verb(inside)}`]),
  ];
}

function clusterRows(moves: readonly ClusterMove[]): string[][] {
  const byOwners = Map.groupBy(moves, ({ from, to }) => `clusters ${from} -> ${to}`);
  return [...byOwners].map(([owners, each]) => [owners, String(each.length), nameList(each.map(clusterText), MAX_NAMES)]);
}

function insideLines(moves: readonly InsideMove[]): string[] {
  const rows = moves
    .toSorted((a, b) => b.namespaces.length - a.namespaces.length)
    .map(({ cluster, from, to, namespaces }) => [
      `in ${cluster}: ${from} -> ${to}`,
      String(namespaces.length),
      nameList(namespaces, MAX_NAMES),
    ]);
  const left = rows.length - MAX_INSIDE_ROWS;
  const more = left > 0 ? [`  and ${left} more such rows, which -o json has`] : [];
  return [...columns(rows.slice(0, MAX_INSIDE_ROWS), "  "), ...more];
}
