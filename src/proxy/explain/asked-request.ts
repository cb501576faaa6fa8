// The request that somebody asks about on /debug/explain, read as the proxy reads a real one. Pure.
import { MeshError } from "../../base/errors.ts";
import { parseRequestInfo, type RequestInfo, type ResourceVerb } from "../../kube/request-info.ts";
import type { ResourceScope } from "../../mesh/ownership/plan-query.ts";

export interface AskedRequest {
  readonly info: RequestInfo;
  /** Of the object that a create sends: its path does not name it. "" if nobody has said it. */
  readonly createdName: string;
  readonly scope: ResourceScope;
  readonly userAgent: string;
  /** As policies see it; "" for none. */
  readonly user: string;
}

const METHODS: Readonly<Record<ResourceVerb, string>> = {
  get: "GET",
  list: "GET",
  watch: "GET",
  create: "POST",
  update: "PUT",
  patch: "PATCH",
  delete: "DELETE",
  deletecollection: "DELETE",
};
const VERBS = Object.keys(METHODS);
const SCOPES: readonly ResourceScope[] = ["namespaced", "cluster", "unknown"];
/** Longer than any name or selector that makes sense in a request line. */
const MAX_TEXT = 1_024;

/** @throws MeshError `BAD_REQUEST` that names the parameter */
export function readAskedRequest(query: URLSearchParams): AskedRequest {
  const text = (name: string) => {
    const value = query.get(name) ?? "";
    if (value.length > MAX_TEXT) throw bad(name, `must have at most ${MAX_TEXT} characters`);
    return value;
  };
  const verb = text("verb");
  if (!isVerb(verb)) throw bad("verb", `must be one of ${VERBS.join(", ")}`);
  const scope = SCOPES.find((each) => each === (query.get("scope") ?? "unknown"));
  if (scope === undefined) throw bad("scope", `must be one of ${SCOPES.join(", ")}`);
  const info = parsed(METHODS[verb], targetOf(verb, text));
  // For example a list with a name, which would be a get.
  if (info.kind === "resource" && info.verb !== verb) throw bad("verb", `a request of this form is a ${info.verb}`);
  const createdName = verb === "create" && text("subresource") === "" ? text("name") : "";
  return { info, createdName, scope, userAgent: text("userAgent"), user: text("user") };
}

function targetOf(verb: ResourceVerb, text: (name: string) => string): string {
  const path = text("path");
  if (path !== "") return path;
  const [group, version, resource, subresource] = [text("group"), text("version") || "v1", text("resource"), text("subresource")];
  if (resource === "") throw bad("resource", "must be the plural name of a resource, for example configmaps");
  const [namespace, name] = [text("namespace"), text("name")];
  const isCollection = ["list", "watch", "deletecollection"].includes(verb);
  const hasNameInPath = !isCollection && (verb !== "create" || subresource !== "");
  if (hasNameInPath && name === "") throw bad("name", `must be set: ${verb} is about one object`);
  const parts = [
    ...(group === "" ? ["api"] : ["apis", group]),
    version,
    ...(namespace === "" ? [] : ["namespaces", namespace]),
    resource,
    ...(hasNameInPath ? [name] : []),
    ...(subresource === "" ? [] : subresource.split("/")),
  ];
  const query = new URLSearchParams();
  if (verb === "watch") query.set("watch", "true");
  if (isCollection && name !== "") query.set("fieldSelector", `metadata.name=${name}`);
  const collectionPath = `/${parts.map(encodeURIComponent).join("/")}`;
  return query.size === 0 ? collectionPath : `${collectionPath}?${query}`;
}

function parsed(method: string, target: string): RequestInfo {
  try {
    return parseRequestInfo(method, target);
  } catch (error) {
    throw new MeshError("BAD_REQUEST", `the request cannot be read: ${(error as Error).message}`, { cause: error });
  }
}

function isVerb(text: string): text is ResourceVerb {
  return VERBS.includes(text);
}

function bad(name: string, message: string): MeshError {
  return new MeshError("BAD_REQUEST", `${name}: ${message}`);
}
