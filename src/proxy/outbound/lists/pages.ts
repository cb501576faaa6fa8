// Later pages of a list that began in one namespace. Invariant: a page is asked for in the path to which its
// token belongs, or answered 410 Expired, upon which clients list anew; no page is asked for in a way that skips
// objects.
//
// kube-apiserver (seen on 1.36) makes the token of `fieldSelector=metadata.namespace=x` relative to x, but
// reads it relative to all namespaces, and so silently loses the rest of x. In x's own path it reads the
// token correctly. Tokens of all other plans are relative to all namespaces and go on under any plan but that
// one. The start of a token shows its kind.
import { BoundedMap } from "../../../base/bounded-map.ts";
import type { Clock } from "../../../base/clock.ts";
import { parseFieldSelector } from "../../../kube/field-selector.ts";
import { StatusError } from "../../../kube/status.ts";
import { NO_NAMESPACE, planQuery, type QueryPlan } from "../../../route/plan-query.ts";
import { readViewOf } from "../../../route/snapshot.ts";
import { inNamespace, type ResourceCall } from "../../call/call.ts";
import type { SentRequest } from "../../filter/sent-request.ts";
import type { Collection } from "../../moves/known.ts";
import { enforcedNow, type Session } from "../../session/session.ts";

export interface Pages {
  /** A list was sent, which may come in pages. */
  sent(call: ResourceCall, request: SentRequest): void;
  /** How to ask for the page of a call, if it continues a list. @throws StatusError Expired */
  resume(call: ResourceCall, collection: Collection, plan: QueryPlan): { readonly call: ResourceCall; readonly plan: QueryPlan };
}

/** A compaction, by default every 5 minutes, voids the tokens before it. The rest is a margin. */
const TOKEN_MS = 15 * 60_000;
/** Clients choose resources freely. */
const MAX_RESOURCES = 1_000;

export function createPages(session: Session, clock: Clock): Pages {
  // Resource -> the namespaces to which a list was limited -> the time of the last one.
  const singles = new BoundedMap<string, Map<string, number>>(MAX_RESOURCES);

  const lately = (key: string): string[] => {
    const known = singles.get(key);
    if (known === undefined) return [];
    for (const [namespace, atMs] of known) if (clock.monotonicMs() - atMs > TOKEN_MS) known.delete(namespace);
    if (known.size === 0) singles.delete(key);
    return [...known.keys()];
  };
  // The plan without `metadata.namespace=`.
  const overAll = (plan: QueryPlan, { group, resource }: Collection) =>
    plan.only === undefined
      ? plan
      : planQuery(readViewOf(enforcedNow(session).view(group, resource)), plan.scope, { oneNamespace: false });

  return {
    sent({ info }, { collection: { group, resource }, serverFilter: { only } }) {
      if (only === undefined || only === NO_NAMESPACE || !info.query.has("limit")) return;
      const key = `${group}/${resource}`;
      const known = singles.get(key) ?? new Map<string, number>();
      known.set(only, clock.monotonicMs());
      singles.set(key, known);
    },
    resume(call, collection, plan) {
      const token = call.info.query.get("continue") ?? "";
      if (token === "" || collection.namespace !== "" || namesNamespace(call)) return { call, plan };
      const kind = kindOfToken(token);
      const [single, ...ambiguous] = lately(`${collection.group}/${collection.resource}`);
      if (kind === "all-namespaces" || (single === undefined && kind === "unknown"))
        return { call, plan: overAll(plan, collection) };
      // Tokens of a resource without namespaces look like tokens of one namespace.
      if (single === undefined && plan.scope !== "namespaced") return { call, plan };
      if (single === undefined || ambiguous.length > 0) throw expired();
      if (kind === "unknown") {
        // The token of another storage belongs to the selector of the first page, as the protocol says.
        if (plan.only !== single) throw expired();
        return { call, plan };
      }
      const inPath = { namespacePlan: "one-namespace", fieldSelector: "", only: single, isByPath: true } as const;
      return { call: inNamespace(call, single, call.info.query), plan: { ...plan, ...inPath } };
    },
  };
}

/** True if the caller itself limits the list to a namespace: its tokens belong to that. */
function namesNamespace({ info }: ResourceCall): boolean {
  const selector = info.query.get("fieldSelector") ?? "";
  if (!selector.includes("metadata.namespace")) return false;
  try {
    return parseFieldSelector(selector).some(({ field, operator }) => field === "metadata.namespace" && operator === "=");
  } catch {
    return true; // the API server refuses it
  }
}

// k8s.io/apiserver's tokens are JSON in base64:
// {"v":"meta.k8s.io/v1","rv":7,"start":"/namespace/name\u0000"}.
function kindOfToken(token: string): "all-namespaces" | "one-namespace" | "unknown" {
  try {
    const read: unknown = JSON.parse(Buffer.from(token, "base64url").toString("utf8"));
    if (typeof read !== "object" || read === null || !("v" in read) || !("start" in read)) return "unknown";
    if (read.v !== "meta.k8s.io/v1" || typeof read.start !== "string") return "unknown";
    return read.start.replace(/^\//, "").includes("/") ? "all-namespaces" : "one-namespace";
  } catch {
    return "unknown";
  }
}

function expired(): StatusError {
  return new StatusError("Expired", "ctrlmesh: the list was begun under other routes or by another process, list again");
}
