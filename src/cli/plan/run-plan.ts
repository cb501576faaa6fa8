// What `ctrlmesh plan` reads, and what it prints.
import { z } from "zod";
import type { MeshCluster } from "../../api/mesh-cluster.ts";
import { PLACEMENT_DECISIONS, type PlacementDecision } from "../../api/placement-decision.ts";
import { formatProblem, validate } from "../../api/problems.ts";
import { MESH_CLUSTERS, SHARDING_CONFIGS, VIRTUAL_APPS } from "../../api/resources.ts";
import { NAMESPACES } from "../../kube/client/resources.ts";
import type { KubeObject } from "../../kube/types.ts";
import type { Source, SourceObject } from "../../manager/apps/app.ts";
import { notInstalled } from "../apps/apps.ts";
import { listDecisions, listMeshClusters } from "../apps/cluster-states.ts";
import { type FileObject, isOurs, readObjects, titleOf } from "../apps/read-objects.ts";
import type { Cluster } from "../frame/cluster.ts";
import { type Call, failure, usageError } from "../frame/command.ts";
import { EXIT, type ExitCode } from "../frame/exit.ts";
import { namespaceOf } from "../frame/flags.ts";
import { appliedEdits } from "./applied-edits.ts";
import { type Edits, type PlannedApp, planEdits, type StoredObjects } from "./plan-edits.ts";
import { planLines } from "./plan-lines.ts";
import { checkNamed, namedInside, readOwned } from "./read-inside.ts";
import { managerSources } from "./sources.ts";

const TEXTS = z.record(z.string(), z.string().nullable()).nullish();
const METADATA = z.object({ labels: TEXTS, annotations: TEXTS });

/** What the manager reads of it. Its CRD checks the rest. */
const REF = z.object({ name: z.string(), namespace: z.string().optional() });
const DECISION = z.object({ decisions: z.array(z.object({ clusterProfileRef: REF })) });

interface PlannedFiles {
  readonly files: readonly string[];
  /** Names of MeshClusters. */
  readonly deletedClusters: readonly string[];
  /** CLUSTER=FILE with the namespaces of another cluster. */
  readonly insides: readonly string[];
}

/** Takes at least one file, cluster or namespace of a cluster. */
export async function runPlan(
  { files, deletedClusters, insides }: PlannedFiles,
  { flags, output, readFile, cluster }: Call,
): Promise<ExitCode> {
  const objects: FileObject[] = [];
  for (const file of files) objects.push(...objectsIn(file, await readFile(file)));
  const named = await namedInside(insides, readFile);
  const connected = await cluster();
  const home = namespaceOf(flags, connected.namespace);
  const isElsewhere = deletedClusters.length + insides.length > 0;
  const inFiles = editsOf(objects, home, isElsewhere);
  for (const name of deletedClusters) checkDeleted(name, inFiles, home);
  const objectsBefore = await readStored(connected, inFiles, isElsewhere ? [home] : []);
  for (const name of named.keys()) checkNamed(name, [...objectsBefore.clusters, ...inFiles.clusters], home);
  const { owned, unread } = await readOwned(connected, [...objectsBefore.clusters, ...inFiles.clusters]);
  const stored = { ...objectsBefore, inside: { owned, named, home } };
  const edits = { ...inFiles, deletedClusters: deletedClusters.map((name) => storedCluster(stored, home, name)) };
  const applied = await appliedEdits(connected, stored, edits);
  const plan = planEdits(stored, applied.edits);
  const { apps, clusters } = plan;
  output.data("Plan", { apps, clusters }, planLines(plan, edits));
  output.hint("computed here, from the objects in the cluster and the rules of this version of ctrlmesh");
  if (unread !== undefined) output.hint(`the namespaces in other clusters are not known here: ${unread}`);
  for (const each of applied.asInFile) output.hint(`planned as the file has it, since kubectl apply could not be tried: ${each}`);
  if ([...apps, ...clusters].some(({ problems }) => problems.length > 0)) return EXIT.failed;
  return apps.some(mayMove) ? EXIT.findings : EXIT.ok;
}

function mayMove({ moves, clusterMoves, insideMoves, insideUnknown }: PlannedApp): boolean {
  return moves.length + clusterMoves.length + insideMoves.length + insideUnknown.length > 0;
}

/** Refuses a cluster that is to be deleted and is in a file: it depends on the order whether it exists afterwards. */
function checkDeleted(name: string, { clusters }: Pick<Edits, "clusters">, home: string): void {
  if (clusters.some(({ metadata }) => metadata.namespace === home && metadata.name === name))
    throw usageError(`--delete-cluster ${name}: a file has this MeshCluster, too: leave out one of them`);
}

function storedCluster({ clusters }: Pick<StoredObjects, "clusters">, home: string, name: string): MeshCluster {
  const found = clusters.find(({ metadata }) => metadata.namespace === home && metadata.name === name);
  if (found === undefined) throw failure(`there is no MeshCluster ${name} in namespace ${home}`);
  return found;
}

function objectsIn(file: string, text: string): readonly FileObject[] {
  const { objects, problems } = readObjects(text);
  const [first] = problems;
  if (first !== undefined) throw failure(`${file}: ${first.object}: ${first.problem}`);
  return objects;
}

function editsOf(objects: readonly FileObject[], home: string, isElsewhere: boolean): Omit<Edits, "deletedClusters"> {
  const ofKind = (kind: string) =>
    objects.filter((object) => isOurs(object) && object.kind === kind).map((object) => inNamespace(object, home));
  const planned = objects.filter((object) => isPlanned(object) || isDecision(object) || isNamespace(object));
  if (planned.length === 0 && !isElsewhere)
    throw failure(
      "no file has an app of Controller Mesh, a MeshCluster, a PlacementDecision or a Namespace: is it the right one?",
    );
  for (const object of planned) checkMetadata(object);
  const [virtualApps, families] = managerSources();
  return {
    namespaces: objects.filter(isNamespace) as KubeObject[],
    clusters: ofKind(MESH_CLUSTERS.kind) as MeshCluster[],
    decisions: objects.filter(isDecision).map((object) => decisionIn(object, home)),
    objects: new Map<Source, SourceObject[]>([
      [virtualApps, ofKind(VIRTUAL_APPS.kind)],
      [families, ofKind(SHARDING_CONFIGS.kind)],
    ]),
  };
}

function isPlanned(object: FileObject): boolean {
  return isOurs(object) && [VIRTUAL_APPS, SHARDING_CONFIGS, MESH_CLUSTERS].some(({ kind }) => kind === object.kind);
}

function isDecision({ kind, apiVersion }: FileObject): boolean {
  return kind === PLACEMENT_DECISIONS.kind && String(apiVersion).startsWith(`${PLACEMENT_DECISIONS.group}/`);
}

function decisionIn(object: FileObject, home: string): PlacementDecision {
  const checked = validate(DECISION, object);
  const [problem] = checked.ok ? [] : checked.problems;
  if (problem !== undefined) throw failure(`${titleOf(object)}: ${formatProblem(problem)}`);
  return inNamespace(object, home) as PlacementDecision;
}

function isNamespace({ kind, apiVersion }: FileObject): boolean {
  return kind === "Namespace" && apiVersion === "v1";
}

/** What is read of it before the rules of the manager are asked. */
function checkMetadata(object: FileObject): void {
  if (typeof object.metadata?.name !== "string") throw failure(`${titleOf(object)}: metadata.name must be set`);
  const { error } = METADATA.safeParse(object.metadata);
  const [field] = error?.issues[0]?.path ?? [];
  if (field !== undefined) throw failure(`${titleOf(object)}: metadata.${String(field)} must have a text for each name`);
}

function inNamespace(object: FileObject, home: string): SourceObject {
  const { namespace = home, ...metadata } = object.metadata as { readonly namespace?: string };
  return { ...object, metadata: { ...metadata, namespace } } as SourceObject;
}

/** Labels of namespaces decide in all apps of the cluster; an edit of an app or a MeshCluster only in its namespace. */
async function readStored(
  cluster: Cluster,
  { namespaces, objects, clusters, decisions }: Omit<Edits, "deletedClusters">,
  more: readonly string[],
): Promise<Omit<StoredObjects, "inside">> {
  const edited: readonly KubeObject[] = [...[...objects.values()].flat(), ...clusters, ...decisions];
  const places = [...new Set([...edited.map(({ metadata }) => metadata.namespace), ...more])];
  const read = async (source: Source): Promise<readonly SourceObject[]> => {
    if (namespaces.length > 0) return cluster.list(source.resource);
    return (await Promise.all(places.map((place) => cluster.list(source.resource, place)))).flat();
  };
  const lists = Promise.all([cluster.list(NAMESPACES), ...[...objects.keys()].map(read)]);
  const [all = [], ...ofSources] = await lists.catch(notInstalled(VIRTUAL_APPS));
  const named = [...ofSources.flat(), ...edited];
  const [clustersIn, decisionsIn] = await Promise.all([
    Promise.all(places.map((place) => listMeshClusters(cluster, place))),
    Promise.all(places.map((place) => listDecisions(cluster, place, named))),
  ]);
  return {
    namespaces: all,
    objects: new Map([...objects.keys()].map((source, at) => [source, ofSources[at] ?? []])),
    clusters: clustersIn.flat(),
    decisions: decisionsIn.flat(),
  };
}
