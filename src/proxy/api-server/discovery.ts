// Asks the API server, as the caller, whether a resource is namespaced, so that a CRD that was installed
// later is known from its first request. Invariant: it never fails and never waits longer than two seconds;
// without an answer the scope is "unknown", so that one broken aggregated API stops nothing.

import { z } from "zod";
import { BoundedMap } from "../../base/bounded-map.ts";
import type { Clock } from "../../base/clock.ts";
import { readJson } from "../../base/json.ts";
import { JSON_TYPE } from "../../kube/media-types.ts";
import { parseRequestInfo } from "../../kube/request-info.ts";
import type { ResourceScope } from "../../route/plan-query.ts";
import { addWait, type Call, createRecord, type Handler } from "../call/call.ts";
import { readBody } from "../http/byte-stream.ts";
import { identityHeaders } from "./headers.ts";

export interface Discovery {
  /** The scope of the call's resource; "unknown" if it has none or none can be found out. */
  scopeOf(call: Call): Promise<ResourceScope>;
}

export interface DiscoveryOptions {
  /** Sends the question; the upstream's `send`. */
  readonly send: Handler;
  readonly clock: Clock;
}

const ASK_TIMEOUT_MS = 2_000;
/** A resource changes its scope only if it is deleted and created again. */
const FRESH_MS = 10 * 60_000;
/** After a failure or a miss: not asked again within. */
const RETRY_MS = 5_000;
const MAX_BODY_BYTES = 4 * 1024 * 1024;
/** Clients may invent groups. */
const MAX_GROUP_VERSIONS = 500;

// The part of metav1.APIResourceList that is read.
const resourceList = z.object({ resources: z.array(z.object({ name: z.string(), namespaced: z.boolean() })) });

const NONE: ReadonlyMap<string, ResourceScope> = new Map();

interface Known {
  readonly scopes: ReadonlyMap<string, ResourceScope>;
  readonly askedAt: number;
}

/** Makes the cache. */
export function createDiscovery({ send, clock }: DiscoveryOptions): Discovery {
  const groupVersions = new BoundedMap<string, Known>(MAX_GROUP_VERSIONS);
  // By path and caller, since callers have different rights.
  const asking = new Map<string, Promise<ReadonlyMap<string, ResourceScope>>>();

  const ask = async (path: string, call: Call): Promise<ReadonlyMap<string, ResourceScope>> => {
    const answer = await fetchScopes(path, call, send, clock);
    const before = groupVersions.get(path)?.scopes ?? NONE;
    if (answer === "refused") return before; // not remembered, since the next caller may be allowed
    const scopes = answer ?? before;
    groupVersions.set(path, { scopes, askedAt: clock.monotonicMs() });
    return scopes;
  };

  return {
    async scopeOf(call) {
      const { info } = call;
      if (info.kind !== "resource") return "unknown";
      const path = info.group === "" ? `/api/${info.version}` : `/apis/${info.group}/${info.version}`;
      const entry = groupVersions.get(path);
      const scope = entry?.scopes.get(info.resource);
      if (entry !== undefined && clock.monotonicMs() - entry.askedAt < (scope === undefined ? RETRY_MS : FRESH_MS))
        return scope ?? "unknown";
      const key = `${path} ${JSON.stringify(identityHeaders(call.headers))}`;
      let running = asking.get(key);
      if (running === undefined) {
        running = ask(path, call).finally(() => asking.delete(key));
        asking.set(key, running);
      }
      const started = clock.monotonicMs();
      const scopes = await running;
      addWait(call.record, clock.monotonicMs() - started);
      return scopes.get(info.resource) ?? "unknown";
    },
  };
}

/** @returns `refused` if the caller may not ask; undefined if there was no answer to read */
async function fetchScopes(
  path: string,
  call: Call,
  send: Handler,
  clock: Clock,
): Promise<Map<string, ResourceScope> | "refused" | undefined> {
  const timeout = new AbortController();
  const timer = clock.after(ASK_TIMEOUT_MS, () => timeout.abort(new Error("discovery: no answer within two seconds")));
  try {
    const info = parseRequestInfo("GET", path);
    const reply = await send({
      method: "GET",
      target: path,
      info,
      headers: { ...identityHeaders(call.headers), accept: JSON_TYPE },
      body: null,
      signal: timeout.signal, // not the caller's: others wait for the same answer
      record: createRecord(info),
    });
    const body = await readBody(reply.body, MAX_BODY_BYTES);
    if (reply.status === 401 || reply.status === 403) return "refused";
    if (reply.status !== 200) return undefined;
    const { resources } = readJson(resourceList, body);
    return new Map(resources.map(({ name, namespaced }) => [name, namespaced ? "namespaced" : "cluster"]));
  } catch {
    return undefined;
  } finally {
    timer.cancel();
  }
}
