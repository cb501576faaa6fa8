// Chooses the patch by its media type. Custom resources know no strategic merge, as in the API server.
import { StatusError } from "../../kube/status.ts";
import type { JsonObject, StoredObject } from "../object.ts";
import type { ResourceType } from "../registry.ts";
import { applyJsonPatch } from "./json-patch.ts";
import { applyMergePatch } from "./merge-patch.ts";
import { applyStrategicMerge } from "./strategic-merge.ts";

export const APPLY = "application/apply-patch+yaml";

/** The object with the patch applied, to be written as by an update. @throws StatusError */
export function patchObject(type: ResourceType, object: StoredObject, mediaType: string, patch: unknown): JsonObject {
  switch (mediaType) {
    case "application/json-patch+json":
      return applyJsonPatch(object, patch) as JsonObject;
    case "application/merge-patch+json":
      return applyMergePatch(object, patch) as JsonObject;
    case "application/strategic-merge-patch+json":
      if (!type.custom) return applyStrategicMerge(object, patch) as JsonObject;
  }
  throw new StatusError("UnsupportedMediaType", `the body of the request was in an unknown format: ${mediaType}`);
}
