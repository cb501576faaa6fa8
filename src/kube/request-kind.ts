// The kinds of requests that the proxy treats differently, with one list of subresources for each kind.
import { firstSubresource, type RequestInfo, type ResourceInfo } from "./request-info.ts";

/** Subresources with requests that become tunnels or reach another server, also over plain HTTP. */
const STREAMING: ReadonlySet<string> = new Set(["exec", "attach", "portforward", "proxy"]);

/** Subresources whose GET only returns data. "" is the object itself. */
const READABLE: ReadonlySet<string> = new Set(["", "status", "scale", "log", "approval", "ephemeralcontainers", "resize"]);

/** Subresources that clients write as the whole object, so that its labels may change. */
const WHOLE_OBJECT: ReadonlySet<string> = new Set(["status", "finalize", "approval", "ephemeralcontainers", "resize"]);

export function isWatch(info: RequestInfo): boolean {
  return info.kind === "resource" && info.verb === "watch";
}

/** True for requests that kube-apiserver calls long-running. */
export function isLongRunning(info: RequestInfo): boolean {
  return isWatch(info) || isEndless(info);
}

/** True for tunnels, followed logs and proxies. Only their client or this proxy ends them. */
export function isEndless(info: RequestInfo): boolean {
  if (info.kind !== "resource" || info.verb === "watch") return false;
  if (info.upgrade !== undefined) return true;
  const subresource = firstSubresource(info);
  return STREAMING.has(subresource) || (subresource === "log" && info.query.has("follow"));
}

/** True for a subresource that may be a tunnel. Any API may have one, for example KubeVirt's `vnc`. */
export function mayUpgrade(info: RequestInfo): boolean {
  if (info.kind !== "resource" || isListOrWatch(info)) return false;
  return !READABLE.has(info.subresource) && !WHOLE_OBJECT.has(info.subresource);
}

/** True for requests that the API server passes on to another server. */
export function isProxied(info: RequestInfo): boolean {
  return info.kind === "resource" && firstSubresource(info) === "proxy";
}

/** True for requests whose answers are objects of Kubernetes. */
export function answersObjects(info: ResourceInfo): boolean {
  const subresource = firstSubresource(info);
  return subresource !== "log" && !STREAMING.has(subresource);
}

export function isPlainGet({ verb, subresource }: ResourceInfo): boolean {
  return verb === "get" && READABLE.has(subresource);
}

export function writesWholeObject({ subresource }: ResourceInfo): boolean {
  return subresource === "" || WHOLE_OBJECT.has(subresource);
}

export function isCollection(info: RequestInfo): boolean {
  return info.kind === "resource" && (info.verb === "list" || info.verb === "deletecollection");
}

export function isListOrWatch({ verb }: ResourceInfo): boolean {
  return verb === "list" || verb === "watch";
}
