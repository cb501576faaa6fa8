// The API server's refusals in its own words, as far as clients read them. The caller throws the result.
import { type StatusCause, StatusError } from "../../src/kube/status.ts";
import { qualifiedResource, type ResourceType } from "./model/registry.ts";
import type { Problem } from "./model/schema.ts";

type Named = Pick<ResourceType, "group" | "resource">;

export function notFound(type: Named, name: string): StatusError {
  return new StatusError("NotFound", `${qualifiedResource(type)} ${JSON.stringify(name)} not found`, details(type, name));
}

export function alreadyExists(type: Named, name: string): StatusError {
  return new StatusError(
    "AlreadyExists",
    `${qualifiedResource(type)} ${JSON.stringify(name)} already exists`,
    details(type, name),
  );
}

export function conflict(type: Named, name: string, why: string): StatusError {
  const message = `Operation cannot be fulfilled on ${qualifiedResource(type)} ${JSON.stringify(name)}: ${why}`;
  return new StatusError("Conflict", message, details(type, name));
}

export function staleVersion(type: Named, name: string): StatusError {
  return conflict(type, name, "the object has been modified; please apply your changes to the latest version and try again");
}

export function forbidden(type: Named, name: string, why: string, causes?: readonly StatusCause[]): StatusError {
  const message = `${qualifiedResource(type)} ${JSON.stringify(name)} is forbidden: ${why}`;
  return new StatusError("Forbidden", message, { ...details(type, name), ...(causes === undefined ? {} : { causes }) });
}

/** 422 with one cause for each problem. `kind` names the kind of the object, not its resource, as on the API server. */
export function invalid(type: Pick<ResourceType, "group" | "kind">, name: string, problems: readonly Problem[]): StatusError {
  const list = problems.map(({ field, message }) => `${field}: ${message}`);
  const qualified = type.group === "" ? type.kind : `${type.kind}.${type.group}`;
  const message = `${qualified} ${JSON.stringify(name)} is invalid: ${list.length === 1 ? list[0] : `[${list.join(", ")}]`}`;
  return new StatusError("Invalid", message, { name, group: type.group, kind: type.kind, causes: problems });
}

export function badRequest(message: string): StatusError {
  return new StatusError("BadRequest", message);
}

/** 404 for a path without a resource. */
export function noSuchResource(): StatusError {
  return new StatusError("NotFound", "the server could not find the requested resource", {});
}

function details(type: Named, name: string) {
  return { name, group: type.group, kind: type.resource };
}
