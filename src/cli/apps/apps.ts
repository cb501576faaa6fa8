// The apps of a cluster, for the commands: one for each VirtualApp, and one for each family of ShardingConfigs.
// Invariant: what the commands say of an app comes from its objects and status, and is computed nowhere else.
import type { AppStatus } from "../../api/app-status.ts";
import type { Condition } from "../../api/conditions.ts";
import { SHARDING_CONFIGS, VIRTUAL_APPS } from "../../api/resources.ts";
import { rootNameOf } from "../../api/sharding-config-rules.ts";
import { isMeshError } from "../../base/errors.ts";
import { jsonText } from "../../base/json.ts";
import type { Resource } from "../../kube/client/resource.ts";
import type { KubeObject } from "../../kube/types.ts";
import { type FrozenPlace, frozenPlaceOf } from "../../mesh/ownership/frozen-places.ts";
import type { Cluster } from "../frame/cluster.ts";
import { failure, usageError } from "../frame/command.ts";
import { readStatus } from "./read-status.ts";

export interface AppObject extends KubeObject {
  readonly spec?: AppSpec;
  /** Another version may have written it (read-status.ts). */
  readonly status?: unknown;
}

/** What the commands read and change in a spec. Each may have any form: admission may have been off. */
interface AppOptions {
  readonly paused?: unknown;
  readonly guard?: unknown;
  readonly frozen?: unknown;
}

interface AppSpec extends AppOptions {
  readonly route?: AppOptions | undefined;
}

export interface AppKind {
  readonly resource: Resource<AppObject>;
  /** A spec, or a part of one for a merge patch, with these options. */
  specWith(options: AppOptions): AppSpec;
  optionsIn(spec: AppSpec): AppOptions;
  /** The app that the object is a part of. */
  nameOf(object: AppObject): string;
}

export const APP_KINDS: readonly AppKind[] = [
  {
    resource: VIRTUAL_APPS as Resource<AppObject>,
    specWith: (route) => ({ route }),
    optionsIn: ({ route }) => route ?? {},
    nameOf: ({ metadata }) => metadata.name ?? "",
  },
  {
    resource: SHARDING_CONFIGS as Resource<AppObject>,
    specWith: (options) => options,
    optionsIn: (spec) => spec,
    nameOf: ({ metadata, status }) => familyIn(status) ?? rootNameOf(metadata) ?? metadata.name ?? "",
  },
];

function familyIn(status: unknown): string | undefined {
  const { family } = (typeof status === "object" && status !== null ? status : {}) as { readonly family?: unknown };
  return typeof family === "string" && family !== "" ? family : undefined;
}

export interface FoundApp {
  readonly kind: AppKind;
  /** As in the label of its pods. */
  readonly name: string;
  readonly namespace: string;
  /** The one with the status of the app. */
  readonly object: AppObject;
  /** All of which the app is made. */
  readonly objects: readonly AppObject[];
  /** Undefined if there is none yet. */
  readonly status: AppStatus | undefined;
  /** The fields of the status that cannot be read: another version has written it. */
  readonly unread: readonly string[];
}

/** All apps, ordered by namespace and name. @param namespace undefined: of all namespaces */
export async function listApps(cluster: Cluster, namespace: string | undefined): Promise<FoundApp[]> {
  const lists = await Promise.all(APP_KINDS.map((kind) => listKind(cluster, kind, namespace)));
  const textOf = (app: FoundApp) => `${app.namespace}/${app.name}`;
  return lists.flat().sort((a, b) => (textOf(a) < textOf(b) ? -1 : 1));
}

async function listKind(cluster: Cluster, kind: AppKind, namespace: string | undefined): Promise<FoundApp[]> {
  return appsIn(kind, await cluster.list(kind.resource, namespace).catch(notInstalled(kind.resource)));
}

/** The apps of which these objects are. */
export function appsIn(kind: AppKind, objects: readonly AppObject[]): FoundApp[] {
  const families = Map.groupBy(objects, (object) => `${object.metadata.namespace}/${kind.nameOf(object)}`);
  return [...families.values()].flatMap((family) => appOf(kind, family));
}

/** What a list throws in a cluster without the mesh. */
export function notInstalled({ resource, group }: Pick<Resource, "resource" | "group">): (error: unknown) => never {
  return (error) => {
    if (!isMeshError(error, "NOT_FOUND")) throw error;
    throw failure(`Controller Mesh is not installed in this cluster: it does not serve ${resource}.${group}`);
  };
}

function appOf(kind: AppKind, objects: readonly AppObject[]): FoundApp[] {
  const object = objects.find(hasAppStatus) ?? objects[0];
  if (object === undefined) return [];
  const { status, unread } = readStatus(object.status);
  return [{ kind, name: kind.nameOf(object), namespace: object.metadata.namespace ?? "", object, objects, status, unread }];
}

/** A config whose status is of its shard alone has no conditions but Ready, and no subsets. */
function hasAppStatus({ status }: AppObject): boolean {
  return typeof status === "object" && status !== null && !("shard" in status && !("subsets" in status));
}

/**
 * The one app of this name, or one of whose objects has it.
 * @param name NAME, or KIND/NAME
 * @param namespace undefined: in any namespace
 * @throws MeshError `COMMAND_FAILED` with the names that there are, `USAGE` without a name
 */
export async function findApp(cluster: Cluster, name: string | undefined, namespace: string | undefined): Promise<FoundApp> {
  if (name === undefined || name === "") throw usageError("name an app");
  const apps = await listApps(cluster, namespace);
  const found = apps.filter((app) => isNamed(app, name));
  if (found[0] !== undefined && found.length === 1) return found[0];
  const where = namespace === undefined ? "this cluster" : `namespace ${namespace}`;
  if (found.length === 0) {
    const names = [...new Set(apps.map((app) => app.name))].slice(0, 10);
    throw failure(
      `there is no app ${name} in ${where}; ${names.length === 0 ? "it has no app" : `its apps are: ${names.join(", ")}`}`,
    );
  }
  const choices = found.map((app) => `${app.kind.resource.kind.toLowerCase()}/${app.object.metadata.name} -n ${app.namespace}`);
  throw failure(`several apps in ${where} have the name ${name}: choose as with kubectl, for example ${choices.join(" or ")}`);
}

function isNamed({ kind, name, objects }: FoundApp, text: string): boolean {
  const [wanted = "", ofKind] = text.split("/").reverse();
  const { kind: kindName, resource } = kind.resource;
  const isKind = ofKind === undefined || [kindName.toLowerCase(), resource].includes(ofKind.toLowerCase());
  return isKind && (name === wanted || objects.some(({ metadata }) => metadata.name === wanted));
}

export function pausedObjects({ kind, objects }: FoundApp): readonly AppObject[] {
  return objects.filter(({ spec }) => kind.optionsIn(spec ?? {}).paused === true);
}

export interface Frozen extends FrozenPlace {
  /** Its key in the spec. */
  readonly key: string;
  readonly reason: string;
  readonly object: AppObject;
}

/** The namespaces that the objects of an app freeze. */
export function frozenIn({ kind, objects }: FoundApp): readonly Frozen[] {
  return objects.flatMap((object) => {
    const { frozen } = kind.optionsIn(object.spec ?? {});
    if (typeof frozen !== "object" || frozen === null) return [];
    return Object.entries(frozen).map(([key, reason]) => ({ key, ...frozenPlaceOf(key), reason: jsonText(reason), object }));
  });
}

/** True if the status says that freezes in other clusters stop nobody. Converged names the first of them. */
export function mayBeUnheld(app: FoundApp, { cluster }: FrozenPlace): boolean {
  return cluster !== undefined && conditionOf(app, "Converged")?.reason === NOT_FROZEN;
}

export const NOT_FROZEN = "NotFrozen";

export function conditionOf({ status }: FoundApp, type: string): Condition | undefined {
  return status?.conditions?.find((condition) => condition.type === type);
}

/** True if the condition is true of the object as it is now. */
export function isTrueNow(app: FoundApp, type: string): boolean {
  const condition = conditionOf(app, type);
  return condition?.status === "True" && condition.observedGeneration === app.object.metadata.generation;
}
