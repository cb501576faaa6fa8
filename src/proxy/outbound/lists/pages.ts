// Later pages of a list that began in one namespace. Invariant: a page is asked for in the path to which its
// token belongs, or answered 410 Expired, upon which clients list anew; the proxy never asks in a way that
// skips objects.
//
// kube-apiserver (seen on 1.36) makes the token of `fieldSelector=metadata.namespace=x` relative to x, but
// reads it relative to all namespaces, and so silently loses the rest of x. In x's own path it reads the
// token correctly, so the proxy asks for later pages there. Tokens of all other plans are relative to all
// namespaces and go on under any plan but that one. The start of a token shows its kind.
import { BoundedMap } from "../../../base/bounded-map.ts";
import type { Clock } from "../../../base/clock.ts";
import { parseFieldSelector } from "../../../kube/field-selector.ts";
import { StatusError } from "../../../kube/status.ts";
import type { GroupResource } from "../../../kube/types.ts";
import type { QueryPlan } from "../../../route/plan-query.ts";
import { type Call, inNamespace } from "../../call/call.ts";
import type { Collection } from "../../moves/collection.ts";

export interface Page {
  readonly call: Call;
  readonly plan: QueryPlan;
}

export interface Pages {
  /** A list that may come in pages was limited to one namespace. */
  began(target: GroupResource, namespace: string): void;
  /**
   * How to ask for the page of a call that continues a list.
   * @param without the plan as it is without `metadata.namespace=`
   * @throws StatusError Expired
   */
  resume(call: Call, collection: Collection, plan: QueryPlan, without: () => QueryPlan): Page;
}

/**
 * A compaction, every 5 minutes by default, voids the tokens before it. The rest is a margin for rarer
 * compactions.
 */
const TOKEN_MS = 15 * 60_000;
/** Clients choose resources freely. */
const MAX_RESOURCES = 1_000;

export function createPages(clock: Clock): Pages {
  // Resource -> the namespaces to which a list was limited -> the time of the last one.
  const singles = new BoundedMap<string, Map<string, number>>(MAX_RESOURCES);

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
      singles.set(key, known);
    },
    resume(call, collection, plan, without) {
      if (collection.namespace !== "" || namesNamespace(call)) return { call, plan };
      const kind = kindOfToken(call.info.query.get("continue") ?? "");
      const [single, ...ambiguous] = lately(`${collection.group}/${collection.resource}`);
      if (kind === "all-namespaces") return { call, plan: without() };
      if (single === undefined && kind === "unknown") return { call, plan: without() };
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
function namesNamespace({ info }: Call): boolean {
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
