// Short forms of requests, for the tables of the differential tests.
import type { RawRequest } from "./raw-client.ts";

type Headers = readonly (readonly [name: string, value: string])[];

export const PROTOBUF = "application/vnd.kubernetes.protobuf";

/** An Accept for a Table, a PartialObjectMetadata or its list. */
export function as(kind: string, type = "application/json"): string {
  return `${type};as=${kind};v=v1;g=meta.k8s.io`;
}

export function get(target: string, accept?: string, headers: Headers = []): RawRequest {
  return { target, headers: accept === undefined ? headers : [["Accept", accept], ...headers] };
}

export function post(target: string, body: string, type = "application/json"): RawRequest {
  return { method: "POST", target, headers: [["Content-Type", type]], body };
}

export function put(target: string, body: string): RawRequest {
  return { ...post(target, body), method: "PUT" };
}

/** `type` without "application/". */
export function patch(target: string, type: string, body: string): RawRequest {
  return { ...post(target, body, `application/${type}`), method: "PATCH" };
}

export function remove(target: string, options?: string): RawRequest {
  return options === undefined ? { method: "DELETE", target } : { ...post(target, options), method: "DELETE" };
}
