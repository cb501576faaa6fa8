// Reads the verb and the object of a request from its method and URL, by the rules of kube-apiserver's
// RequestInfoFactory (k8s.io/apiserver/pkg/endpoints/request). Anything that the API server may read
// differently is an error: dot segments, encoded slashes, empty segments, a query that Go splits differently.
import { MeshError } from "../base/errors.ts";
import { nameOfFieldSelector } from "./field-selector.ts";
import { StatusError } from "./status.ts";

export type ResourceVerb = "get" | "list" | "watch" | "create" | "update" | "patch" | "delete" | "deletecollection";

interface CommonInfo {
  readonly method: string;
  /** The path as sent. */
  readonly path: string;
  /** The decoded segments of the path. */
  readonly segments: readonly string[];
  /** The query as Go reads it. Of equal parameters the first one counts, as in Kubernetes' conversion. */
  readonly query: URLSearchParams;
  /** The protocol to which the client wants to switch, so that the request becomes a tunnel. */
  readonly upgrade?: string | undefined;
}

/** A request for anything but a resource: /healthz, /version, /openapi/v3, discovery. */
interface NonResourceInfo extends CommonInfo {
  readonly kind: "non-resource";
  /** Lower-case HTTP method. */
  readonly verb: string;
}

export interface ResourceInfo extends CommonInfo {
  readonly kind: "resource";
  readonly verb: ResourceVerb;
  /** "" is the core group. */
  readonly group: string;
  readonly version: string;
  /** Namespace; "" for a cluster-scoped resource and for all namespaces. For `namespaces/x` it is x. */
  readonly namespace: string;
  readonly resource: string;
  /** Everything after the name, joined with "/"; "" if there is none. */
  readonly subresource: string;
  /** "" for collections, unless a field selector names one object. */
  readonly name: string;
  /** True if the path names the object. Then the request is not for a collection. */
  readonly nameInPath: boolean;
  /** The path has the legacy form /api/v1/watch/... */
  readonly legacyWatch: boolean;
}

export type RequestInfo = NonResourceInfo | ResourceInfo;

/** The subresource itself: `proxy` for `proxy/metrics`, as kube-apiserver calls it. */
export function firstSubresource({ subresource }: Pick<ResourceInfo, "subresource">): string {
  const slash = subresource.indexOf("/");
  return slash < 0 ? subresource : subresource.slice(0, slash);
}

const METHOD_VERBS: ReadonlyMap<string, ResourceVerb> = new Map([
  ["GET", "get"],
  ["HEAD", "get"],
  ["POST", "create"],
  ["PUT", "update"],
  ["PATCH", "patch"],
  ["DELETE", "delete"],
]);

// Segments after /namespaces/NAME that belong to the namespace object itself.
const NAMESPACE_SUBRESOURCES = new Set(["status", "finalize"]);

/**
 * @param target the request target in origin form, as the request line has it
 * @throws MeshError `BAD_REQUEST_TARGET`; StatusError MethodNotAllowed for a method without a verb, since
 * some resources (proxies) would serve it
 */
export function parseRequestInfo(method: string, target: string, upgrade?: string): RequestInfo {
  const [path, query] = splitTarget(target);
  const segments = decodeSegments(path);
  const common = { method, path, segments, query, upgrade };
  const api = readApiPrefix(segments);
  const verb = METHOD_VERBS.get(method);
  if (api === undefined && (verb !== undefined || method === "OPTIONS")) {
    return { kind: "non-resource", verb: method.toLowerCase(), ...common };
  }
  if (api === undefined || verb === undefined) {
    throw new StatusError("MethodNotAllowed", `ctrlmesh: the method ${method} is not supported here`);
  }

  let rest = api.rest;
  let legacyWatch = false;
  if (rest[0] === "watch" && rest.length > 1) {
    legacyWatch = true;
    rest = rest.slice(1);
  } else if (rest[0] === "proxy") {
    throw new MeshError("BAD_REQUEST_TARGET", `reading path ${path}: the legacy proxy prefix is not supported`);
  }
  const place = readPlace(rest);
  return {
    kind: "resource",
    ...common,
    group: api.group,
    version: api.version,
    ...place,
    name: place.name || collectionName(verb, query),
    nameInPath: place.name !== "",
    verb: collectionVerb(verb, place.name, query, legacyWatch),
    legacyWatch,
  };
}

function splitTarget(target: string): [string, URLSearchParams] {
  if (!target.startsWith("/")) throw badTarget("must start with /");
  // Go reads such bytes unchanged, Node reads them as Latin-1.
  if (!/^[\x21-\x7e]+$/.test(target)) throw badTarget("must be ASCII; escape other characters");
  const mark = target.indexOf("?");
  return mark < 0 ? [target, new URLSearchParams()] : [target.slice(0, mark), parseQuery(target.slice(mark + 1))];
}

// Refuses what URLSearchParams and Go's url.ParseQuery read differently: a leading question mark, a
// semicolon, and a malformed escape.
function parseQuery(raw: string): URLSearchParams {
  if (raw.startsWith("?")) throw badTarget("the query has two question marks before it");
  if (raw.includes(";")) throw badTarget("a semicolon in the query must be escaped");
  decode(raw);
  return new URLSearchParams(raw);
}

function decodeSegments(path: string): string[] {
  if (path === "/") return [];
  const raw = path.slice(1).split("/");
  if (raw.at(-1) === "") raw.pop(); // one trailing slash is common and harmless
  const segments = path.includes("%") ? raw.map(decode) : raw;
  if (segments.some(isAmbiguousSegment)) {
    throw new MeshError("BAD_REQUEST_TARGET", `reading path ${path}: empty, dot or escaped segments are not allowed`);
  }
  return segments;
}

function isAmbiguousSegment(segment: string): boolean {
  return segment === "" || segment === "." || segment === ".." || /[/\\\0]/.test(segment);
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch (cause) {
    throw badTarget("malformed percent escape", { cause });
  }
}

function badTarget(problem: string, options?: ErrorOptions): MeshError {
  return new MeshError("BAD_REQUEST_TARGET", `reading request target: ${problem}`, options);
}

function readApiPrefix(segments: readonly string[]): { group: string; version: string; rest: readonly string[] } | undefined {
  const [prefix, second, third] = segments;
  if (prefix === "api" && second !== undefined && segments.length > 2) {
    return { group: "", version: second, rest: segments.slice(2) };
  }
  if (prefix === "apis" && second !== undefined && third !== undefined && segments.length > 3) {
    return { group: second, version: third, rest: segments.slice(3) };
  }
  return undefined;
}

function readPlace(rest: readonly string[]): Pick<ResourceInfo, "namespace" | "resource" | "name" | "subresource"> {
  const [first = "", second, third] = rest;
  if (first === "namespaces" && second !== undefined) {
    if (third === undefined || NAMESPACE_SUBRESOURCES.has(third)) {
      return { namespace: second, resource: first, name: second, subresource: rest.slice(2).join("/") };
    }
    return { namespace: second, resource: third, name: rest[3] ?? "", subresource: rest.slice(4).join("/") };
  }
  return { namespace: "", resource: first, name: second ?? "", subresource: rest.slice(2).join("/") };
}

function collectionName(verb: ResourceVerb, query: URLSearchParams): string {
  if (verb !== "get" && verb !== "delete") return "";
  return nameOfFieldSelector(query.get("fieldSelector") ?? "");
}

function collectionVerb(verb: ResourceVerb, name: string, query: URLSearchParams, legacyWatch: boolean): ResourceVerb {
  if (legacyWatch && verb === "get") return "watch";
  if (verb === "get" && name === "") return isTrue(query.get("watch")) ? "watch" : "list";
  if (verb === "delete" && name === "") return "deletecollection";
  return verb;
}

/**
 * Kubernetes' query conversion: a missing value, "false" and "0" are false, everything else is true, also the
 * empty value. Some of its comparisons fold Unicode ("fal\u017fe" is false), others do not.
 * @throws StatusError for a value that they may read differently
 */
export function isTrue(value: string | null): boolean {
  if (value !== null && !/^[\x20-\x7e]*$/.test(value)) throw badTarget("a parameter is neither true nor false");
  return value !== null && value.toLowerCase() !== "false" && value !== "0";
}
