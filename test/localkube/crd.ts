// CustomResourceDefinitions: their checks and defaults, and the rows that they add to the table of kinds. A definition is
// established by the write that creates it, where the API server takes a moment. Conversion between versions only changes
// apiVersion.
import type { Backend } from "./backend.ts";
import { invalid } from "./failures.ts";
import type { Column } from "./model/columns.ts";
import { asArray, asObject, asString, isObject, type JsonObject, type StoredObject } from "./model/object.ts";
import { customType, type ResourceType, storageKey } from "./model/registry.ts";
import type { Problem, Schema } from "./model/schema.ts";

export const DEFINITIONS = "apiextensions.k8s.io/customresourcedefinitions";
/** Keeps a definition until its objects are gone (garbage.ts). */
export const CLEANUP_FINALIZER = "customresourcecleanup.apiextensions.k8s.io";

/** Fills in and checks a definition in place. Ignores all other kinds. @throws StatusError Invalid */
export function prepareCustomDefinition(
  draft: StoredObject,
  type: ResourceType,
  existing: StoredObject | undefined,
  time: string,
): void {
  if (storageKey(type) !== DEFINITIONS) return;
  const spec = asObject(draft.spec);
  const names = asObject(spec.names);
  const problems = problemsOf(draft.metadata.name, spec, names);
  if (problems.length > 0) throw invalid(type, draft.metadata.name, problems);
  const kind = asString(names.kind);
  const acceptedNames = { singular: kind.toLowerCase(), listKind: `${kind}List`, ...names };
  draft.spec = { conversion: { strategy: "None" }, ...spec, names: acceptedNames };
  const storage = asArray(spec.versions).find((version) => asObject(version).storage === true);
  const status = asObject(draft.status ?? existing?.status);
  const stored = new Set([...asArray(status.storedVersions), asObject(storage).name]);
  draft.status = {
    ...status,
    acceptedNames,
    storedVersions: [...stored],
    conditions: existing === undefined ? establishedConditions(time) : asArray(status.conditions),
  };
}

/** Updates the table of kinds when a definition in the store changes. */
export function serveDefinitions(backend: Backend): void {
  backend.store.listen(DEFINITIONS, ({ type, object }) => {
    const spec = asObject(object.spec);
    const plural = asString(asObject(spec.names).plural);
    backend.registry.replace(asString(spec.group), plural, type === "DELETED" ? [] : typesOf(object));
  });
}

/** The rows of a definition: one for each served version, newest first. */
function typesOf(definition: StoredObject): ResourceType[] {
  const spec = asObject(definition.spec);
  const names = asObject(spec.names);
  return asArray(spec.versions)
    .filter(isObject)
    .filter((version) => version.served === true)
    .map((version) => typeOfVersion(spec, names, version));
}

function typeOfVersion(spec: JsonObject, names: JsonObject, version: JsonObject): ResourceType {
  const schema = asObject(version.schema).openAPIV3Schema;
  const columns = asArray(version.additionalPrinterColumns).filter(isObject) as unknown as Column[];
  return customType({
    group: asString(spec.group),
    version: asString(version.name),
    resource: asString(names.plural),
    singular: asString(names.singular),
    kind: asString(names.kind),
    listKind: asString(names.listKind),
    shortNames: asArray(names.shortNames).map(asString),
    categories: asArray(names.categories).map(asString),
    namespaced: spec.scope === "Namespaced",
    status: asObject(version.subresources).status !== undefined,
    selectableFields: asArray(version.selectableFields).map((field) => asString(asObject(field).jsonPath).replace(/^\./, "")),
    columns,
    ...(isObject(schema) ? { schema: schema as Schema } : {}),
  });
}

function problemsOf(name: string, spec: JsonObject, names: JsonObject): Problem[] {
  const problems: Problem[] = [];
  const required = (field: string, value: unknown) => {
    if (asString(value) === "") problems.push({ reason: "FieldValueRequired", field, message: "Required value" });
  };
  required("spec.group", spec.group);
  required("spec.scope", spec.scope);
  required("spec.names.plural", names.plural);
  required("spec.names.kind", names.kind);
  const versions = asArray(spec.versions).map(asObject);
  if (problems.length === 0 && name !== `${asString(names.plural)}.${asString(spec.group)}`) {
    const message = `Invalid value: ${JSON.stringify(name)}: must be spec.names.plural+"."+spec.group`;
    problems.push({ reason: "FieldValueInvalid", field: "metadata.name", message });
  }
  if (versions.filter((version) => version.storage === true).length !== 1) {
    const message = "Invalid value: must have exactly one version marked as storage version";
    problems.push({ reason: "FieldValueInvalid", field: "spec.versions", message });
  }
  for (const [index, version] of versions.entries()) {
    if (isObject(asObject(version.schema).openAPIV3Schema)) continue;
    problems.push({
      reason: "FieldValueRequired",
      field: `spec.versions[${index}].schema.openAPIV3Schema`,
      message: "Required value: schemas are required",
    });
  }
  return problems;
}

function establishedConditions(time: string): JsonObject[] {
  const condition = (type: string, reason: string, message: string) => ({
    type,
    status: "True",
    lastTransitionTime: time,
    reason,
    message,
  });
  return [
    condition("NamesAccepted", "NoConflicts", "no conflicts found"),
    condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
  ];
}
