// The media types of the Kubernetes API.

export const JSON_TYPE = "application/json";
export const PROTOBUF_TYPE = "application/vnd.kubernetes.protobuf";
export const JSON_PATCH_TYPE = "application/json-patch+json";
export const MERGE_PATCH_TYPE = "application/merge-patch+json";
export const STRATEGIC_MERGE_PATCH_TYPE = "application/strategic-merge-patch+json";
/** Server-side apply. Every API server since 1.16 accepts this name, also for a body in JSON. */
export const APPLY_YAML_TYPE = "application/apply-patch+yaml";

/** The type in a Content-Type or in one clause of an Accept: lower case, without parameters; "" for none. */
export function mediaTypeOf(header: string | undefined): string {
  return (header ?? "").split(";", 1)[0]?.trim().toLowerCase() ?? "";
}
