// The Kubernetes client: the verbs over the transport. It keeps no state of objects, so a process can share
// it.
import { systemClock, systemRandom } from "../../base/clock.ts";
import { APPLY_YAML_TYPE, JSON_PATCH_TYPE, MERGE_PATCH_TYPE } from "../media-types.ts";
import type { KubeObject } from "../types.ts";
import type { KubeConnection } from "./connection.ts";
import { type ExchangeContext, exchange } from "./exchange.ts";
import { listAll } from "./list.ts";
import {
  acceptOf,
  apiVersionOf,
  collectionPath,
  formatQuery,
  type ObjectRef,
  objectPath,
  projectionOf,
  type QueryValue,
  type Resource,
  resourceName,
} from "./resource.ts";
import { createTransport } from "./transport.ts";
import type { KubeClient, Patch, PatchOptions, RawRequest, WriteOptions } from "./types.ts";
import { watchCollection } from "./watch.ts";

/**
 * @param options by default `timeoutMs` is 30,000 and `maxRetries` 3; tests replace the transport and the
 * clock
 * @throws MeshError `BAD_CONNECTION` for a server address that cannot be used
 */
export function createKubeClient(connection: KubeConnection, options: Partial<Omit<ExchangeContext, "host">> = {}): KubeClient {
  const context: ExchangeContext = {
    transport: options.transport ?? createTransport(connection),
    host: new URL(connection.server).host,
    clock: systemClock,
    random: systemRandom,
    timeoutMs: 30_000,
    maxRetries: 3,
    ...options,
  };
  const send = async <T extends KubeObject>(resource: Resource<T>, call: RawRequest): Promise<T> =>
    projectionOf(resource)(
      (await exchange(context, { ...call, headers: { accept: acceptOf(resource, "get"), ...call.headers } })) as KubeObject,
    );
  const [fieldManager = ""] = connection.userAgent.split("/");

  return {
    request: (request) => exchange(context, request),
    get: (resource, ref, call = {}) =>
      send(resource, { ...call, method: "GET", path: objectPath(resource, ref), doing: doing("getting", resource, ref) }),
    list: (resource, call = {}) => listAll(context, resource, call),
    create: (resource, object, call = {}) =>
      send(resource, {
        ...call,
        method: "POST",
        path: collectionPath(resource, resource.namespaced ? object.metadata.namespace : "") + writeQuery(call),
        body: withType(resource, object),
        doing: doing("creating", resource, refOf(object)),
      }),
    update: (resource, object, call = {}) =>
      send(resource, {
        ...call,
        method: "PUT",
        path: objectPath(resource, refOf(object)) + writeQuery(call),
        body: withType(resource, object),
        doing: doing("updating", resource, refOf(object)),
      }),
    patch: (resource, ref, patch, call = {}) => send(resource, patchRequest(resource, ref, patch, fieldManager, call)),
    async delete(resource, ref, call = {}) {
      const { gracePeriodSeconds, preconditions } = call;
      await exchange(context, {
        ...call,
        method: "DELETE",
        path: objectPath(resource, ref),
        body: { kind: "DeleteOptions", apiVersion: "v1", gracePeriodSeconds, preconditions },
        doing: doing("deleting", resource, ref),
      });
    },
    createSubresource: (resource, ref, subresource, body, call = {}) =>
      exchange(context, {
        ...call,
        method: "POST",
        path: objectPath(resource, ref, subresource),
        body,
        doing: doing(`creating ${subresource} of`, resource, ref),
      }),
    watch: (resource, call = {}) => watchCollection(context, resource, call),
    close: () => context.transport.close(),
  };
}

const PATCH_TYPES: Readonly<Record<Patch["type"], string>> = {
  merge: MERGE_PATCH_TYPE,
  json: JSON_PATCH_TYPE,
  apply: APPLY_YAML_TYPE,
};

function patchRequest(resource: Resource, ref: ObjectRef, patch: Patch, fieldManager: string, call: PatchOptions): RawRequest {
  const apply = patch.type === "apply" ? { fieldManager: patch.fieldManager ?? fieldManager, force: true } : {};
  return {
    ...call,
    method: "PATCH",
    path: objectPath(resource, ref, call.subresource) + writeQuery(call, apply),
    headers: { "content-type": PATCH_TYPES[patch.type] },
    body: patch.type === "apply" ? withType(resource, patch.body) : patch.body,
    doing: doing(call.subresource === undefined ? "patching" : `patching the ${call.subresource} of`, resource, ref),
  };
}

function writeQuery({ dryRun }: WriteOptions, apply: Readonly<Record<string, QueryValue>> = {}): string {
  return formatQuery({ dryRun: dryRun === true ? "All" : undefined, ...apply });
}

function refOf({ metadata }: KubeObject): ObjectRef {
  return { namespace: metadata.namespace, name: metadata.name ?? "" };
}

function withType(resource: Resource, object: unknown): unknown {
  return { apiVersion: apiVersionOf(resource), kind: resource.kind, ...(object as object) };
}

function doing(verb: string, resource: Resource, { namespace, name }: ObjectRef): string {
  return `${verb} ${resourceName(resource)} ${namespace ? `${namespace}/${name}` : name}`;
}
