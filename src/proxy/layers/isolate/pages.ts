// Later pages of a chunked list that was pushed down to one namespace. Invariant: a page is asked for in the way in which its
// token counts, or answered 410 Expired, upon which clients list anew; never asked in a way that skips objects.
//
// kube-apiserver (seen on 1.36) makes the token of `fieldSelector=metadata.namespace=x` relative to x, but reads it relative to
// all namespaces, and so loses the rest of x without a word. In x's own path it reads the token rightly, so that is where later
// pages are asked for. Tokens of every other plan are relative to all namespaces and may be continued under any plan but that
// one. Called by the push-down; a token's start tells which kind it is.
import type { Clock } from "../../../base/clock.ts";
import { parseFieldSelector } from "../../../kube/field-selector.ts";
import { StatusError } from "../../../kube/status.ts";
import type { QueryPlan } from "../../../route/plan-query.ts";
import type { Call } from "../../call/call.ts";
import { inNamespace } from "../../call/query.ts";
import type { Collection } from "../../relist/resync.ts";
import type { GroupResource } from "../../session/session.ts";

export interface Page {
  readonly call: Call;
  readonly plan: QueryPlan;
}

export interface Pages {
  /** A list that may come in pages was asked for in one namespace alone. */
  began(target: GroupResource, namespace: string): void;
  /**
   * How to ask for the page of a call that continues a list.
   * @param without the plan as it is without `metadata.namespace=`
   * @throws StatusError Expired
   */
  resume(call: Call, collection: Collection, plan: QueryPlan, without: () => QueryPlan): Page;
}

/** API servers compact every 5 minutes, after which a token is void; with a margin for those that are set to less often. */
const TOKEN_MS = 15 * 60_000;
/** Clients may make resources up. */
const MAX_RESOURCES = 1_000;

export function createPages(clock: Clock): Pages {
  // Resource -> the namespaces that it was asked for in alone -> when last.
  const singles = new Map<string, Map<string, number>>();

  const lately = (key: string): string[] => {
    const known = singles.get(key);
    if (known === undefined) return [];
    for (const [namespace, atMs] of known) if (clock.monotonicMs() - atMs > TOKEN_MS) known.delete(namespace);
    if (known.size === 0) singles.delete(key);
    return [...known.keys()];
  };

  return {
    began({ group, resource }, namespace) {
      const key = `${group}/${resource}`;
      const known = singles.get(key) ?? new Map<string, number>();
      known.set(namespace, clock.monotonicMs());
      singles.delete(key);
      singles.set(key, known);
      const [oldest] = singles.keys();
      if (singles.size > MAX_RESOURCES && oldest !== undefined) singles.delete(oldest);
    },
    resume(call, collection, plan, without) {
      if (collection.namespace !== "" || namesNamespace(call)) return { call, plan };
      const kind = kindOfToken(call.info.query.get("continue") ?? "");
      const [single, ...ambiguous] = lately(`${collection.group}/${collection.resource}`);
      if (kind === "all-namespaces") return { call, plan: without() };
      if (single === undefined && kind === "unknown") return { call, plan: without() };
      // Without namespaces every token looks like one of a single one.
      if (single === undefined && plan.namespaces === undefined) return { call, plan };
      if (single === undefined || ambiguous.length > 0) throw expired();
      if (kind === "unknown") {
        // Another storage's token: good for what the first page asked for, as the protocol says.
        if (plan.only !== single) throw expired();
        return { call, plan };
      }
      const inPath = { plan: "one-namespace", fieldSelector: "", only: single, isByPath: true } as const;
      return { call: inNamespace(call, single, call.info.query), plan: { ...plan, ...inPath } };
    },
  };
}

/** True if the caller has pinned the namespace by itself: its tokens are its own affair. */
function namesNamespace({ info }: Call): boolean {
  const selector = info.query.get("fieldSelector") ?? "";
  if (!selector.includes("metadata.namespace")) return false;
  try {
    return parseFieldSelector(selector).some(({ field, operator }) => field === "metadata.namespace" && operator === "=");
  } catch {
    return true; // the API server refuses it
  }
}

// k8s.io/apiserver's tokens are JSON in base64: {"v":"meta.k8s.io/v1","rv":7,"start":"/namespace/name\u0000"}.
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
