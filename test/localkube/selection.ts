// The label and field selectors of a request as one predicate. The registry has the selectable fields of each kind. As on the API
// server, an unknown field is refused, since ignoring it would widen the answer.
import { isMeshError } from "../../src/base/errors.ts";
import { parseFieldSelector } from "../../src/kube/field-selector.ts";
import { matchesTerms } from "../../src/kube/label-selector.ts";
import { StatusError } from "../../src/kube/status.ts";
import { fieldAt, type StoredObject } from "./model/object.ts";
import type { ResourceType } from "./model/registry.ts";
import { parseTerms } from "./parse-terms.ts";

export type Selection = (object: StoredObject) => boolean;

const COMMON_FIELDS = ["metadata.name", "metadata.namespace"];

/**
 * The selection of a list, watch or deletecollection: `namespace` ("" is all), `labelSelector` and `fieldSelector`.
 * @throws StatusError BadRequest
 */
export function createSelection(type: ResourceType, namespace: string, query: URLSearchParams): Selection {
  try {
    const labels = parseTerms(query.get("labelSelector") ?? "");
    const fields = parseFieldSelector(query.get("fieldSelector") ?? "");
    for (const { field } of fields) {
      if (COMMON_FIELDS.includes(field) || type.selectableFields.includes(field)) continue;
      throw new StatusError("BadRequest", `field label not supported: ${field}`);
    }
    return (object) =>
      (namespace === "" || object.metadata.namespace === namespace) &&
      matchesTerms(labels, object.metadata.labels) &&
      fields.every(({ field, operator, value }) => (textAt(object, field) === value) === (operator === "="));
  } catch (error) {
    if (isMeshError(error, "BAD_SELECTOR")) throw new StatusError("BadRequest", error.message);
    throw error;
  }
}

function textAt(object: StoredObject, path: string): string {
  // The field "source" of an Event selects by the source's component.
  const value = fieldAt(object, path === "source" ? "source.component" : path);
  return value === undefined || value === null ? (path === "spec.unschedulable" ? "false" : "") : String(value);
}
