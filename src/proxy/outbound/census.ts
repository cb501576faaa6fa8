// Counts the objects that a pod may see, for limits in percent of them (`maxDeleted`). The first list or delete
// of a resource starts a list of metadata, as the caller and through the layers behind, so it counts what the
// pod owns. Invariant: no call waits for a list. Until it has ended, and if it fails, the count is not known.
import { BoundedMap } from "../../base/bounded-map.ts";
import type { Clock } from "../../base/clock.ts";
import type { ProcessContext } from "../../base/process-context.ts";
import { createListFilter } from "../../kube/codec/codec.ts";
import { isListOrWatch } from "../../kube/request-kind.ts";
import type { Population } from "../../policy/policy-request.ts";
import {
  askAsCaller,
  clientsRecord,
  type Handler,
  identityHeaders,
  isResourceCall,
  type Layer,
  type ResourceCall,
} from "../call/call.ts";
import { listStream } from "../filter/filtered-body.ts";
import { asSource, discardBody, readBody } from "../http/byte-stream.ts";
import type { Policies } from "../policies/policies.ts";

export interface CensusDeps extends Pick<ProcessContext, "clock" | "log"> {
  readonly policies: Pick<Policies, "countsObjects">;
}

/** While objects are deleted, they are counted anew after this time. */
export const COUNT_EVERY_MS = 5 * 60_000;
const RETRY_MS = 10_000;
const TIMEOUT_MS = 60_000;
/** Resources whose counts are kept; the oldest count is forgotten. */
const MAX_RESOURCES = 64;
/** Resources and namespaces that are counted by themselves. */
const MAX_COUNTS = 1_024;
/** A list without its items. */
const MAX_REST_BYTES = 1024 * 1024;
const METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

interface Count {
  readonly startedMs: number;
  hasFailed: boolean;
}

export function census({ policies, clock, log }: CensusDeps): Layer {
  const counts = new BoundedMap<string, Count>(MAX_COUNTS);
  const populations = new BoundedMap<string, Population>(MAX_RESOURCES);
  const start = (call: ResourceCall, next: Handler, resource: string, key: string): void => {
    const count: Count = { startedMs: clock.monotonicMs(), hasFailed: false };
    counts.set(key, count);
    countObjects(call, next, clock).then(
      (counted) => void populations.set(resource, withOthers(counted, populations.get(resource))),
      (error: unknown) => {
        count.hasFailed = true;
        log.warn({ err: error, resource: key }, "objects not counted: limits go by the last count, or by atLeast");
      },
    );
  };
  const isFresh = (key: string): boolean => {
    const known = counts.get(key);
    return known !== undefined && clock.monotonicMs() - known.startedMs < (known.hasFailed ? RETRY_MS : COUNT_EVERY_MS);
  };
  return (next) => (call) => {
    if (!isResourceCall(call) || !policies.countsObjects(call.info.resource)) return next(call);
    const { group, resource: name, verb, namespace } = call.info;
    const resource = `${name}.${group}`;
    // Informers list when they start, so the objects are counted before the first delete.
    if (isListOrWatch(call.info) && counts.get(resource) === undefined) start(call, next, resource, resource);
    if (isListOrWatch(call.info) || verb === "get") return next(call);
    clientsRecord(call.record).population = () => {
      // Without the right to list all namespaces, each is counted by itself.
      const key = populations.get(resource)?.isPartial ? `${resource} ${namespace}` : resource;
      if (!isFresh(key)) start(call, next, resource, key);
      return populations.get(resource);
    };
    return next(call);
  };
}

/** Counts of other namespaces stay. */
function withOthers(counted: Population, before: Population | undefined): Population {
  if (!counted.isPartial || !before?.isPartial) return counted;
  const byNamespace = new BoundedMap<string, number>(MAX_COUNTS);
  for (const [namespace, count] of [...before.byNamespace, ...counted.byNamespace]) byNamespace.set(namespace, count);
  let total = 0;
  for (const count of byNamespace.values()) total += count;
  return { total, byNamespace, isPartial: true };
}

/** A caller that may list in the namespace of its delete only is counted there. @throws an error with the status */
async function countObjects(call: ResourceCall, next: Handler, clock: Clock): Promise<Population> {
  const { group, version, resource, namespace } = call.info;
  const root = group === "" ? `/api/${version}` : `/apis/${group}/${version}`;
  const stop = new AbortController();
  const timer = clock.after(TIMEOUT_MS, () => stop.abort(new Error("the list took too long")));
  const list = async (path: string): Promise<Population> => {
    const headers = { ...identityHeaders(call.headers), accept: METADATA, "accept-encoding": "identity" };
    const asked = askAsCaller(call, `${path}?resourceVersion=0`, headers, stop.signal);
    asked.record.isAside = true;
    const { status, body } = await next(asked);
    if (status !== 200 || body === null) {
      discardBody(body);
      throw Object.assign(new Error(`listing ${path}: status ${status}`), { status });
    }
    const byNamespace = new Map<string, number>();
    let total = 0;
    const filter = createListFilter("json", (meta) => {
      total++;
      byNamespace.set(meta.namespace, (byNamespace.get(meta.namespace) ?? 0) + 1);
      return false;
    });
    await readBody(
      listStream(asSource(body), filter, () => undefined),
      MAX_REST_BYTES,
    );
    return { total, byNamespace };
  };
  try {
    return await list(`${root}/${resource}`).catch(async (error: { readonly status?: number }) => {
      if (error.status !== 403 || namespace === "" || resource === "namespaces") throw error;
      const { total } = await list(`${root}/namespaces/${encodeURIComponent(namespace)}/${resource}`);
      return { total, byNamespace: new Map([[namespace, total]]), isPartial: true };
    });
  } finally {
    timer.cancel();
  }
}
