// The apps of a cluster, for the commands: the objects of both source kinds, one for each app. Invariant: what
// the commands say of an app comes from its object and status, and is computed nowhere else.
import { annotationKey } from "../../api/annotations.ts";
import type { AppStatus } from "../../api/app-status.ts";
import type { Condition } from "../../api/conditions.ts";
import { SHARDING_CONFIGS, VIRTUAL_APPS } from "../../api/resources.ts";
import { rootNameOf } from "../../api/sharding-config-rules.ts";
import { isMeshError } from "../../base/errors.ts";
import type { Resource } from "../../kube/client/resource.ts";
import type { KubeObject } from "../../kube/types.ts";
import type { Cluster } from "../frame/cluster.ts";
import { failure, usageError } from "../frame/command.ts";

export interface AppKind {
  readonly resource: Resource<AppObject>;
  /** A spec, or a part of one for a merge patch, that pauses the app or lets it go on. */
  specOf(paused: boolean): Pausing;
  isPaused(spec: Pausing): boolean;
}

interface Pausing {
  readonly paused?: boolean | undefined;
  readonly route?: { readonly paused?: boolean | undefined } | undefined;
}

export interface AppObject extends KubeObject {
  readonly spec?: Pausing;
  readonly status?: AppStatus | undefined;
}

export const APP_KINDS: readonly AppKind[] = [
  {
    resource: VIRTUAL_APPS as Resource<AppObject>,
    specOf: (paused) => ({ route: { paused } }),
    isPaused: ({ route }) => route?.paused === true,
  },
  {
    resource: SHARDING_CONFIGS as Resource<AppObject>,
    specOf: (paused) => ({ paused }),
    isPaused: ({ paused }) => paused === true,
  },
];

export interface FoundApp {
  readonly kind: AppKind;
  readonly object: AppObject;
}

export const CONFIRM_MOVES = annotationKey("confirm-moves");

/** All apps, ordered by namespace and name. @param namespace undefined: of all namespaces */
export async function listApps(cluster: Cluster, namespace: string | undefined): Promise<FoundApp[]> {
  const lists = await Promise.all(APP_KINDS.map((kind) => listKind(cluster, kind, namespace)));
  const textOf = ({ object: { metadata } }: FoundApp) => `${metadata.namespace}/${metadata.name}`;
  return lists.flat().sort((a, b) => (textOf(a) < textOf(b) ? -1 : 1));
}

async function listKind(cluster: Cluster, kind: AppKind, namespace: string | undefined): Promise<FoundApp[]> {
  const objects = await cluster.list(kind.resource, namespace).catch((error: unknown) => {
    if (!isMeshError(error, "NOT_FOUND")) throw error;
    throw failure(
      `Controller Mesh is not installed in this cluster: it does not serve ${kind.resource.resource}.${kind.resource.group}`,
    );
  });
  return objects.filter(isWhole).map((object) => ({ kind, object }));
}

/** False for a ShardingConfig that shows its own shard, while another one has the status of the family. */
function isWhole({ metadata, status }: AppObject): boolean {
  return rootNameOf(metadata) === undefined && (status === undefined || status.subsets !== undefined);
}

/** The one app of this name. @throws MeshError `COMMAND_FAILED` with the names that there are, `USAGE` without a name */
export async function findApp(cluster: Cluster, name: string | undefined, namespace: string): Promise<FoundApp> {
  if (name === undefined) throw usageError("name an app");
  const apps = await listApps(cluster, namespace);
  const found = apps.filter(({ object }) => object.metadata.name === name);
  if (found[0] !== undefined && found.length === 1) return found[0];
  if (found.length > 1)
    throw failure(
      `several kinds have an app ${name} in namespace ${namespace}: ${found.map(({ kind }) => kind.resource.kind).join(", ")}`,
    );
  const names = apps.map(({ object }) => object.metadata.name).slice(0, 10);
  const known = names.length === 0 ? "it has no app" : `its apps are: ${names.join(", ")}`;
  throw failure(`there is no app ${name} in namespace ${namespace}; ${known}`);
}

export function isPaused({ kind, object }: FoundApp): boolean {
  return kind.isPaused(object.spec ?? {});
}

export function conditionOf({ object: { status } }: FoundApp, type: string): Condition | undefined {
  return status?.conditions?.find((condition) => condition.type === type);
}

/** True if the condition is true of the object as it is now. */
export function isTrueNow(app: FoundApp, type: string): boolean {
  const condition = conditionOf(app, type);
  return condition?.status === "True" && condition.observedGeneration === app.object.metadata.generation;
}
