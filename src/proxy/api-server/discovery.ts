// What the proxy knows of each resource: whether it is namespaced, and which filters the API server lacks.
// Invariants: `scopeOf` never fails and never takes more than two seconds, so that a broken aggregated API
// stops nothing; a lacking filter costs speed and never changes what is shown.
import { z } from "zod";
import { BoundedMap } from "../../base/bounded-map.ts";
import type { Clock } from "../../base/clock.ts";
import { readJson } from "../../base/json.ts";
import { JSON_TYPE } from "../../kube/media-types.ts";
import type { GroupResource } from "../../kube/types.ts";
import type { ResourceScope } from "../../mesh/ownership/plan-query.ts";
import { addWait, askAsCaller, type Call, type Handler, identityHeaders } from "../call/call.ts";
import { readBody } from "../http/byte-stream.ts";
import { CallAbort } from "../http/call-signal.ts";

export type Discovery = ReturnType<typeof createDiscovery>;

const ASK_TIMEOUT_MS = 2_000;
/** A resource changes its scope only if it is deleted and created again. */
const FRESH_MS = 10 * 60_000;
/** How long after a failure, or an answer without the resource, the API server is asked again. */
const RETRY_MS = 5_000;
const MAX_BODY_BYTES = 4 * 1024 * 1024;
/** Of a group version. An API server may send more than its clients can keep. */
const MAX_RESOURCES = 2_000;
/** Clients may invent groups. */
const MAX_GROUP_VERSIONS = 500;

/** A DNS label, a slash and the name of a subresource. */
const MAX_NAME_LENGTH = 127;

// The part of metav1.APIResourceList that is read.
const resourceList = z.object({
  resources: z.array(z.object({ name: z.string().max(MAX_NAME_LENGTH), namespaced: z.boolean() })),
});

const NONE: ReadonlyMap<string, ResourceScope> = new Map();

interface Known {
  readonly scopes: ReadonlyMap<string, ResourceScope>;
  readonly askedAt: number;
}

export function createDiscovery(send: Handler, clock: Clock) {
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
    /** The scope of the call's resource; "unknown" if it cannot be found out. */
    async scopeOf(call: Call): Promise<ResourceScope> {
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
  const timeout = new CallAbort();
  const timer = clock.after(ASK_TIMEOUT_MS, () => timeout.abort(new Error("discovery: no answer within two seconds")));
  try {
    const headers = { ...identityHeaders(call.headers), accept: JSON_TYPE };
    const reply = await send(askAsCaller(call, path, headers, timeout)); // others wait for the same answer
    const body = await readBody(reply.body, MAX_BODY_BYTES);
    if (reply.status === 401 || reply.status === 403) return "refused";
    if (reply.status !== 200) return undefined;
    const { resources } = readJson(resourceList, body);
    const whole = resources.filter(({ name }) => !name.includes("/")); // the others are subresources
    if (whole.length > MAX_RESOURCES) return undefined;
    return new Map(whole.map(({ name, namespaced }) => [name, namespaced ? "namespaced" : "cluster"]));
  } catch {
    return undefined;
  } finally {
    timer.cancel();
  }
}

/** A kind of server-side filtering; "namespaces" are lists by namespace. */
export type Feature = "labels" | "fields" | "shards" | "namespaces";

/** `refused`: the filter made a request fail. `ignored`: an answer held objects that the filter excludes. */
export type Lack = "refused" | "ignored";

export type ServerFeatures = ReturnType<typeof createServerFeatures>;

/** A new trial costs one more request, but one odd 400 must not turn server-side filtering off for long. */
const REFUSED_MS = 10 * 60_000;
/** A new trial costs only bytes. */
const IGNORED_MS = 5 * 60_000;
/** Clients may invent resources. */
const MAX_KNOWN = 1_000;

export function createServerFeatures(clock: Clock) {
  const missingFeatures = new BoundedMap<string, { readonly why: Lack; readonly untilMs: number }>(MAX_KNOWN);
  return {
    /** Why this feature is not used for the resource now; undefined if it is used. */
    lackOf(target: GroupResource, feature: Feature): Lack | undefined {
      if (missingFeatures.size === 0) return undefined;
      const key = keyOf(target, feature);
      const entry = missingFeatures.get(key);
      if (entry === undefined || clock.monotonicMs() < entry.untilMs) return entry?.why;
      missingFeatures.delete(key);
      return undefined;
    },
    lacks(target: GroupResource, feature: Feature, why: Lack): void {
      const key = keyOf(target, feature);
      missingFeatures.set(key, { why, untilMs: clock.monotonicMs() + (why === "refused" ? REFUSED_MS : IGNORED_MS) });
    },
  };
}

function keyOf({ group, resource }: GroupResource, feature: Feature): string {
  return `${feature} ${group}/${resource}`;
}
