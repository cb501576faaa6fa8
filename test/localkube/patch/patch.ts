// Chooses the patch by its media type. As on the API server, custom resources have no strategic merge.
import { JSON_PATCH_TYPE, MERGE_PATCH_TYPE, STRATEGIC_MERGE_PATCH_TYPE } from "../../../src/kube/media-types.ts";
import { StatusError } from "../../../src/kube/status.ts";
import type { JsonObject, StoredObject } from "../model/object.ts";
import type { ResourceType } from "../model/registry.ts";
import { applyJsonPatch } from "./json-patch.ts";
import { applyMergePatch } from "./merge-patch.ts";
import { applyStrategicMerge } from "./strategic-merge.ts";

/** The patched object, to be written like an update. @throws StatusError */
export function patchObject(type: ResourceType, object: StoredObject, mediaType: string, patch: unknown): JsonObject {
  switch (mediaType) {
    case JSON_PATCH_TYPE:
      return applyJsonPatch(object, patch) as JsonObject;
    case MERGE_PATCH_TYPE:
      return applyMergePatch(object, patch) as JsonObject;
    case STRATEGIC_MERGE_PATCH_TYPE:
      if (!type.custom) return applyStrategicMerge(object, patch) as JsonObject;
  }
  throw new StatusError("UnsupportedMediaType", `the body of the request was in an unknown format: ${mediaType}`);
}
