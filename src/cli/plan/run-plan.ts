// What `ctrlmesh plan` reads, and what it prints.
import { z } from "zod";
import { SHARDING_CONFIGS, VIRTUAL_APPS } from "../../api/resources.ts";
import { NAMESPACES } from "../../kube/client/resources.ts";
import type { KubeObject } from "../../kube/types.ts";
import type { Source, SourceObject } from "../../manager/apps/app.ts";
import { notInstalled } from "../apps/apps.ts";
import { type FileObject, isOurs, readObjects, titleOf } from "../apps/read-objects.ts";
import type { Cluster } from "../frame/cluster.ts";
import { type Call, failure } from "../frame/command.ts";
import { EXIT, type ExitCode } from "../frame/exit.ts";
import { namespaceOf } from "../frame/flags.ts";
import { columns, counted } from "../frame/output.ts";
import { appliedEdits } from "./applied-edits.ts";
import { type Edits, type PlannedApp, planEdits, type StoredObjects } from "./plan-edits.ts";
import { managerSources } from "./sources.ts";

const TEXTS = z.record(z.string(), z.string().nullable()).nullish();
const METADATA = z.object({ labels: TEXTS, annotations: TEXTS });

/** The most names of namespaces in a line. */
const MAX_NAMES = 3;

/** @param files at least one */
export async function runPlan(files: readonly string[], { flags, output, readFile, cluster }: Call): Promise<ExitCode> {
  const objects: FileObject[] = [];
  for (const file of files) objects.push(...objectsIn(file, await readFile(file)));
  const connected = await cluster();
  const edits = editsOf(objects, namespaceOf(flags, connected.namespace));
  const stored = await readStored(connected, edits);
  const applied = await appliedEdits(connected, stored, edits);
  const apps = planEdits(stored, applied.edits);
  const lines = apps.length === 0 ? ["nothing moves: no app goes by the labels of namespaces"] : apps.flatMap(linesOf);
  output.data("Plan", { apps }, lines);
  output.hint("computed here, from the objects in the cluster and the rules of this version of ctrlmesh");
  for (const each of applied.asInFile) output.hint(`planned as the file has it, since kubectl apply could not be tried: ${each}`);
  if (apps.some(({ problems }) => problems.length > 0)) return EXIT.failed;
  return apps.some(({ moves }) => moves.length > 0) ? EXIT.findings : EXIT.ok;
}

function objectsIn(file: string, text: string): readonly FileObject[] {
  const { objects, problems } = readObjects(text);
  const [first] = problems;
  if (first !== undefined) throw failure(`${file}: ${first.object}: ${first.problem}`);
  return objects;
}

function editsOf(objects: readonly FileObject[], home: string): Edits {
  const ofKind = (kind: string) =>
    objects.filter((object) => isApp(object) && object.kind === kind).map((object) => inNamespace(object, home));
  const planned = objects.filter((object) => isApp(object) || isNamespace(object));
  if (planned.length === 0) throw failure("no file has an app of Controller Mesh or a Namespace: is it the right one?");
  for (const object of planned) checkMetadata(object);
  const [virtualApps, families] = managerSources();
  return {
    namespaces: objects.filter(isNamespace) as KubeObject[],
    objects: new Map<Source, SourceObject[]>([
      [virtualApps, ofKind(VIRTUAL_APPS.kind)],
      [families, ofKind(SHARDING_CONFIGS.kind)],
    ]),
  };
}

function isApp(object: FileObject): boolean {
  return isOurs(object) && [VIRTUAL_APPS, SHARDING_CONFIGS].some(({ kind }) => kind === object.kind);
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

/** Labels of namespaces decide in all apps of the cluster; an app's own edit only in its namespace. */
async function readStored(cluster: Cluster, { namespaces, objects }: Edits): Promise<StoredObjects> {
  const places = [...new Set([...objects.values()].flat().map(({ metadata }) => metadata.namespace))];
  const read = async (source: Source): Promise<readonly SourceObject[]> => {
    if (namespaces.length > 0) return cluster.list(source.resource);
    return (await Promise.all(places.map((place) => cluster.list(source.resource, place)))).flat();
  };
  const lists = Promise.all([cluster.list(NAMESPACES), ...[...objects.keys()].map(read)]);
  const [all = [], ...ofSources] = await lists.catch(notInstalled(VIRTUAL_APPS));
  return { namespaces: all, objects: new Map([...objects.keys()].map((source, at) => [source, ofSources[at] ?? []])) };
}

function linesOf({ kind, namespace, name, problems, moves, total, notes }: PlannedApp): string[] {
  const title = `${kind} ${namespace}/${name}`;
  const moving = moves.reduce((sum, each) => sum + each.namespaces.length, 0);
  const verb = moving === 1 ? "moves" : "move";
  const head = moving === 0 ? `${title}: nothing moves` : `${title}: ${moving} of ${counted(total, "namespace")} ${verb}`;
  const rows = moves.map(({ from, to, namespaces }) => [`${from} -> ${to}`, String(namespaces.length), namesOf(namespaces)]);
  if (problems.length > 0) return [`${title}: would be refused`, ...problems.map((problem) => `  ${problem}`)];
  return [head, ...columns(rows, "  "), ...notes.map((note) => `  ${note}`)];
}

function namesOf(names: readonly string[]): string {
  const more = names.length - MAX_NAMES;
  return names.slice(0, MAX_NAMES).join(", ") + (more > 0 ? ` and ${more} more` : "");
}
