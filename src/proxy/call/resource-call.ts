// A call for objects of a resource, as most layers want it.
import type { ResourceInfo } from "../../kube/request-info.ts";
import type { Call } from "./call.ts";

export type ResourceCall = Call & { readonly info: ResourceInfo };

/** True for a call for objects, false for discovery, health and the like. */
export function isResourceCall(call: Call): call is ResourceCall {
  return call.info.kind === "resource";
}
