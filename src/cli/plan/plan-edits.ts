// What edits of apps and of the labels of namespaces move, computed from the objects that the cluster has and with the
// code by which the manager judges edits. Pure. Invariant: objects of one app are judged together, since users edit
// the configs of a family in one file.
import type { MeshCluster } from "../../api/mesh-cluster.ts";
import type { PlacementDecision } from "../../api/placement-decision.ts";
import { formatProblem } from "../../api/problems.ts";
import type { KubeObject } from "../../kube/types.ts";
import type { App, EditVerdict, Source, SourceObject } from "../../manager/apps/app.ts";
import { type NamespaceFacts, namespaceFacts, type RouteSpec } from "../../manager/apps/compile/route-spec.ts";
import { isDeepEqual } from "../../runtime/merge-patch.ts";
import { type ClusterWorld, chosenIn, clusterPlan } from "./cluster-plan.ts";
import { type ClusterEdits, editedClusters, type PlannedCluster } from "./edited-clusters.ts";
import { type InsideMove, type KnownInside, NOTHING_INSIDE, type UnknownInside } from "./inside-plan.ts";
import type { ClusterMove } from "./moved-clusters.ts";
import { type Move, movedNamespaces } from "./moved-namespaces.ts";
import { missingDecisionNotes, notesOf } from "./plan-notes.ts";
import { applied, isSameObject } from "./stored-object.ts";

/** What the cluster has now. */
export interface StoredObjects {
  readonly namespaces: readonly KubeObject[];
  /** The objects of each source, in all namespaces that matter. */
  readonly objects: ReadonlyMap<Source, readonly SourceObject[]>;
  /** Of the namespaces that the edits name, as are the PlacementDecisions. */
  readonly clusters: readonly MeshCluster[];
  readonly decisions: readonly PlacementDecision[];
  readonly inside: KnownInside;
}

/** Objects as the files have them, with their namespaces. */
export interface Edits extends ClusterEdits {
  /** Of other programs. */
  readonly decisions: readonly PlacementDecision[];
  readonly namespaces: readonly KubeObject[];
  readonly objects: ReadonlyMap<Source, readonly SourceObject[]>;
}

export interface PlannedApp {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  readonly problems: readonly string[];
  /** Of the present namespaces, those that get another owner. */
  readonly moves: readonly Move[];
  readonly total: number;
  /** Of the other clusters, those that get another owner. */
  readonly clusterMoves: readonly ClusterMove[];
  /** The clusters that the app divides before or after. */
  readonly clusterTotal: number;
  /** Of the namespaces inside other clusters, those that get another owner. */
  readonly insideMoves: readonly InsideMove[];
  /** The namespaces inside other clusters that are known here. */
  readonly insideTotal: number;
  readonly insideUnknown: readonly UnknownInside[];
  /** What else to know before the edit. */
  readonly notes: readonly string[];
}

interface EditedApp {
  readonly source: Source;
  readonly before: App | undefined;
  readonly after: App | undefined;
  readonly verdicts: readonly EditVerdict[];
}

export interface Plan {
  readonly apps: readonly PlannedApp[];
  /** Of the files. */
  readonly clusters: readonly PlannedCluster[];
}

/** What rules divide. */
interface World extends ClusterWorld {
  readonly namespaces: readonly NamespaceFacts[];
}

export function planEdits(stored: StoredObjects, edits: Edits): Plan {
  const clusters = editedClusters(stored.clusters, edits);
  const namespaces = labelledNamespaces(stored.namespaces, edits.namespaces);
  const kept = stored.decisions.filter((old) => !edits.decisions.some((file) => isSameObject(old, file)));
  const decisions = [...kept, ...edits.decisions];
  const before = { namespaces: stored.namespaces.map(namespaceFacts), decisions: stored.decisions, clusters: stored.clusters };
  const after = { namespaces: namespaces.map(namespaceFacts), decisions, clusters: clusters.after };
  const apps = [...stored.objects.keys()]
    .flatMap((source) => editedApps(source, stored, edits))
    .map((app) => plannedApp(app, before, after, stored.inside));
  return { apps, clusters: clusters.edited };
}

/** As `kubectl apply` does: labels that a file does not name stay. */
function labelledNamespaces(namespaces: readonly KubeObject[], edited: readonly KubeObject[]): KubeObject[] {
  const labelsOf = new Map(edited.map(({ metadata: { name, labels } }) => [name, labels]));
  return namespaces.map((namespace) => {
    const { metadata } = namespace;
    const labels = labelsOf.get(metadata.name);
    return labels === undefined
      ? namespace
      : { ...namespace, metadata: { ...metadata, labels: applied(metadata.labels, labels) } };
  });
}

/** The apps that the files edit. If they edit labels of namespaces, or clusters, also the apps in which these decide. */
function editedApps(source: Source, stored: StoredObjects, edits: Edits): EditedApp[] {
  const objectsBefore = stored.objects.get(source) ?? [];
  const appsOfOthers = [...stored.objects].flatMap(([other, objects]) => (other === source ? [] : other.appsOf(objects)));
  let objects = objectsBefore;
  const verdicts = new Map<string, EditVerdict[]>();
  for (const file of edits.objects.get(source) ?? []) {
    const old = objects.find((each) => isSameObject(each, file));
    const next = editedObject(old, file);
    const apps = appsByPlace(source, objects);
    const key = keyOf(next.metadata.namespace, source.appNameOf(next));
    const own = apps.get(key);
    const others = [...apps.values(), ...appsOfOthers].filter(
      (app) => app.ref.namespace === next.metadata.namespace && app !== own,
    );
    const verdict = source.judgeEdit(old, next, { own, others });
    verdicts.set(key, [...(verdicts.get(key) ?? []), verdict]);
    objects = [...objects.filter((each) => each !== old), next];
  }
  const [appsBefore, appsAfter] = [appsByPlace(source, objectsBefore), appsByPlace(source, objects)];
  const mayMoveAll = edits.namespaces.length > 0 && source.readsNamespaceLabels;
  const dividing = [...appsAfter].flatMap(([key, app]) => (mayMoveAll || dividesEdited(app, edits, stored.inside) ? [key] : []));
  const keys = new Set([...verdicts.keys(), ...dividing]);
  return [...keys].sort().map((key) => ({
    source,
    before: appsBefore.get(key),
    after: appsAfter.get(key),
    verdicts: verdicts.get(key) ?? [],
  }));
}

function dividesEdited({ ref, spec }: App, edits: Edits, { named, home }: KnownInside): boolean {
  if (spec?.clusterOwners === undefined) return false;
  const { clusters, deletedClusters, decisions } = edits;
  const isHere = ({ metadata }: KubeObject) => metadata.namespace === ref.namespace;
  const followed = (spec.decisionKeys ?? []).length > 0 ? decisions : [];
  return [...clusters, ...deletedClusters, ...followed].some(isHere) || (named.size > 0 && ref.namespace === home);
}

function appsByPlace(source: Source, objects: readonly SourceObject[]): Map<string, App> {
  const byNamespace = Map.groupBy(objects, ({ metadata }) => metadata.namespace);
  const apps = [...byNamespace.values()].flatMap((each) => source.appsOf(each));
  return new Map(apps.map((app) => [keyOf(app.ref.namespace, app.ref.name), app]));
}

function keyOf(namespace = "", name = ""): string {
  return `${namespace}/${name}`;
}

/** The object as it will be stored: its status and identity stay, and a new spec is a new generation. */
function editedObject(old: SourceObject | undefined, file: SourceObject): SourceObject {
  const { status: _status, ...sent } = file;
  if (old === undefined) return sent;
  const isSame = isDeepEqual(specOf(old), specOf(file));
  const generation = (old.metadata.generation ?? 1) + (isSame ? 0 : 1);
  const annotations = applied(old.metadata.annotations, file.metadata.annotations);
  const metadata = { ...old.metadata, ...file.metadata, annotations, generation };
  return { ...sent, metadata, ...(old.status !== undefined && { status: old.status }) };
}

function specOf(object: SourceObject): unknown {
  return (object as { readonly spec?: unknown }).spec;
}

function plannedApp(edited: EditedApp, worldBefore: World, worldAfter: World, known: KnownInside): PlannedApp {
  const { source, before, after, verdicts } = edited;
  const { namespace = "", name = "" } = (after ?? before)?.ref ?? {};
  const head = { kind: source.resource.kind, namespace, name, total: worldAfter.namespaces.length };
  const refusals = verdicts.flatMap(({ problems }) => problems.map(formatProblem));
  const problems = refusals.length > 0 ? refusals : (after?.problems ?? []);
  const warnings = verdicts.flatMap((each) => each.warnings);
  if (problems.length > 0)
    return { ...head, problems, moves: [], clusterMoves: [], clusterTotal: 0, ...insideFields(), notes: warnings };
  const routes = routesOf(before, after, verdicts);
  const moves =
    routes === undefined
      ? []
      : movedNamespaces(
          { route: routes.before, namespaces: worldBefore.namespaces },
          { route: routes.after, namespaces: worldAfter.namespaces },
        );
  const clusters = clusterPlan({ ...edited, readsLabels: source.readsNamespaceLabels }, worldBefore, worldAfter, known);
  const abroad = { clusterMoves: clusters.moves, clusterTotal: clusters.total, ...insideFields(clusters.inside) };
  const planned = { ...head, problems, moves, ...abroad };
  const missing = missingDecisionNotes(after, chosenIn(worldAfter, namespace));
  return { ...planned, notes: [...warnings, ...notesOf(before, after, planned), ...clusters.notes, ...missing] };
}

function insideFields({ moves, total, unknown } = NOTHING_INSIDE) {
  return { insideMoves: moves, insideTotal: total, insideUnknown: unknown };
}

/** Undefined: nothing moves by the edit. */
function routesOf(before: App | undefined, after: App | undefined, verdicts: readonly EditVerdict[]) {
  const [old, next] = [before?.spec, after?.spec];
  if (old === undefined || next === undefined || next.isPaused) return undefined;
  // The shards of a root follow from its pods too. Admission estimates them from the edit.
  const estimates = verdicts.flatMap(({ reroute }) => (reroute?.isEstimate === true ? [reroute] : []));
  const [first, last]: (RouteSpec | undefined)[] = [estimates[0]?.before, estimates.at(-1)?.after];
  return { before: first ?? old.route(), after: last ?? next.route() };
}
