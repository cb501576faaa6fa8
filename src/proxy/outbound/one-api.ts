// Refuses what may reach the API of a further cluster behind the server of another cluster: kcp, for example, has /clusters/NAME before
// /api. The routes say nothing about such objects, so nobody would divide them. Also refuses what a gateway may read as another path.

import type { RequestInfo } from "../../kube/request-info.ts";
import { StatusError } from "../../kube/status.ts";
import { type Layer, noteDecision } from "../call/call.ts";

const READS = new Set(["get", "head", "options"]);
const API = new Set(["api", "apis"]);

export const oneApi: Layer = (next) => (call) => {
  const { info, record } = call;
  if (!info.segments.some(mayLeadElsewhere) && (info.kind === "resource" || isOwnPath(info))) return next(call);
  noteDecision(record, "refused", "not-narrowable");
  throw new StatusError(
    "MethodNotAllowed",
    "ctrlmesh: the proxy divides only paths that begin with /api or /apis: write what comes before into the URL in the MeshCluster",
  );
};

/** True for an escape that some gateways decode a second time, and for what some take as the end of a path or of a segment. */
function mayLeadElsewhere(segment: string): boolean {
  return /[%?#;]/.test(segment);
}

/** True for a read of health, discovery and the like. */
function isOwnPath({ verb, segments: [first = "", ...below] }: RequestInfo): boolean {
  return READS.has(verb) && (first === "openapi" || !below.some((segment) => API.has(segment)));
}
