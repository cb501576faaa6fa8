// Asks the API server for a pod as the webhook injects it, and for the same pod without labels, which no app selects.
// Invariant: nothing is computed here, and nothing is stored.
import { INJECTED_LABEL } from "../../api/injected-pod.ts";
import { errorMessage, isMeshError } from "../../base/errors.ts";
import { PODS } from "../../kube/client/resources.ts";
import type { KubeObject } from "../../kube/types.ts";
import type { Cluster } from "../frame/cluster.ts";
import { addedParts } from "./added-parts.ts";

export interface Preview {
  /** The app whose pod it would be. */
  readonly app?: string | undefined;
  /** A strategic merge patch of the pod. */
  readonly added?: unknown;
  /** Why the webhook would refuse the pod. */
  readonly refusal?: string;
  readonly warnings: readonly string[];
  /** The manifest takes the place of the pod without labels, which the cluster refuses. */
  readonly isRough?: true;
}

export async function previewInjection(cluster: Cluster, pod: KubeObject): Promise<Preview> {
  const made = await cluster.dryRunCreate(PODS, pod).catch(refusalOf);
  if (typeof made === "string") return { refusal: made, warnings: [] };
  const app = made.object.metadata.labels?.[INJECTED_LABEL];
  if (app === undefined) return { warnings: made.warnings };
  const { labels = {}, ...metadata } = pod.metadata;
  const bare = await cluster.dryRunCreate(PODS, { ...pod, metadata }).catch(unlessAway);
  const before = bare === undefined ? pod : { ...bare.object, metadata: { ...bare.object.metadata, labels } };
  const added = addedParts(comparable(before), comparable(made.object));
  return { app, added, warnings: made.warnings, ...(bare === undefined && { isRough: true }) };
}

/** The text of a refusal by the mesh. */
function refusalOf(error: unknown): string {
  const message = errorMessage(error);
  if (/admission webhook .* ctrlmesh: /s.test(message)) return message.slice(message.indexOf("ctrlmesh: "));
  throw error;
}

function unlessAway(error: unknown): undefined {
  if (isMeshError(error, "NO_ANSWER")) throw error;
}

/** The API server gives this volume and its mounts to each pod, by a name that is random. */
const TOKEN_VOLUME = /^kube-api-access-/;

function comparable(pod: KubeObject): unknown {
  const { metadata, spec } = pod as KubeObject & { readonly spec?: unknown };
  const { labels = {}, annotations = {} } = metadata;
  return withoutTokens({ metadata: { labels, annotations }, spec });
}

function withoutTokens(value: unknown): unknown {
  if (Array.isArray(value)) return value.filter((item) => !TOKEN_VOLUME.test(nameIn(item))).map(withoutTokens);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, withoutTokens(part)]));
}

function nameIn(item: unknown): string {
  const { name } = (typeof item === "object" && item !== null ? item : {}) as { readonly name?: unknown };
  return typeof name === "string" ? name : "";
}
