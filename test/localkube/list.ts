// Lists: the version that is read, and its pages. A continue token holds the version and the last key. The next page is read at
// that version from the store's history; it is 410 if the history is too short.
import { StatusError } from "../../src/kube/status.ts";
import { badRequest, invalid } from "./failures.ts";
import type { StoredObject } from "./model/object.ts";
import { type ResourceType, storageKey } from "./model/registry.ts";
import type { Problem } from "./model/schema.ts";
import type { Selection } from "./selection.ts";
import type { Store } from "./store.ts";

export interface ListResult {
  readonly items: readonly StoredObject[];
  readonly metadata: { readonly resourceVersion: string; readonly continue?: string; readonly remainingItemCount?: number };
}

/**
 * @throws StatusError Invalid, Expired, or Timeout for a version in the future
 */
export function listObjects(store: Store, type: ResourceType, selection: Selection, query: URLSearchParams): ListResult {
  checkListQuery(query);
  const limit = Number(query.get("limit") ?? 0);
  const token = query.get("continue") ? readToken(query.get("continue") ?? "") : undefined;
  const version = token?.version ?? versionOf(store, query, limit);
  const entries = version === undefined ? store.entries(storageKey(type)) : store.entriesAt(storageKey(type), version);
  if (entries === undefined) {
    throw new StatusError(
      "Expired",
      token ? "The provided continue parameter is too old: start a new list" : `too old resource version: ${version}`,
    );
  }
  const at = version ?? store.version;
  const selected = entries.filter(([key, object]) => (token === undefined || key > token.lastKey) && selection(object));
  const page = limit > 0 ? selected.slice(0, limit) : selected;
  const lastKey = page.at(-1)?.[0];
  const more = selected.length > page.length && lastKey !== undefined;
  // With selectors the API server cannot know how many objects remain, so it gives no count.
  const counted = !query.get("labelSelector") && !query.get("fieldSelector");
  return {
    items: page.map(([, object]) => object),
    metadata: {
      resourceVersion: String(at),
      ...(more ? { continue: writeToken({ version: at, lastKey }) } : {}),
      ...(more && counted ? { remainingItemCount: selected.length - page.length } : {}),
    },
  };
}

/** The version in a query. @throws StatusError BadRequest */
export function parseVersion(text: string): number {
  if (/^\d+$/.test(text)) return Number(text);
  throw badRequest(`resourceVersion: Invalid value: ${JSON.stringify(text)}: must be a number`);
}

export function tooLargeVersion(wanted: number, current: number): StatusError {
  const causes = [{ reason: "ResourceVersionTooLarge", message: "Too large resource version" }];
  return new StatusError("Timeout", `Too large resource version: ${wanted}, current: ${current}`, {
    causes,
    retryAfterSeconds: 1,
  });
}

/** A 422 about the query of a list or watch. */
export function listOptions(problems: readonly Problem[]): StatusError {
  return invalid({ group: "meta.k8s.io", kind: "ListOptions" }, "", problems);
}

// The exact version to read; undefined for the newest state.
function versionOf(store: Store, query: URLSearchParams, limit: number): number | undefined {
  const text = query.get("resourceVersion") ?? "";
  if (text === "" || text === "0") return undefined;
  const wanted = parseVersion(text);
  if (wanted > store.version) throw tooLargeVersion(wanted, store.version);
  const match = query.get("resourceVersionMatch");
  return match === "Exact" || (match === null && limit > 0) ? wanted : undefined;
}

function checkListQuery(query: URLSearchParams): void {
  const problems: Problem[] = [];
  const forbid = (field: string, why: string) =>
    problems.push({ reason: "FieldValueForbidden", field, message: `Forbidden: ${why}` });
  const match = query.get("resourceVersionMatch") ?? "";
  if (match !== "") {
    if (!query.get("resourceVersion")) forbid("resourceVersionMatch", "needs resourceVersion");
    if (query.get("continue")) forbid("resourceVersionMatch", "must not be used with continue");
    if (match !== "Exact" && match !== "NotOlderThan") forbid("resourceVersionMatch", `unknown value ${JSON.stringify(match)}`);
    if (match === "Exact" && query.get("resourceVersion") === "0")
      forbid("resourceVersionMatch", 'Exact must not be used with resourceVersion "0"');
  }
  if (query.has("sendInitialEvents")) forbid("sendInitialEvents", "is for watches only");
  if (problems.length > 0) throw listOptions(problems);
}

interface Token {
  readonly version: number;
  readonly lastKey: string;
}

function writeToken(token: Token): string {
  return Buffer.from(JSON.stringify(token)).toString("base64url");
}

function readToken(text: string): Token {
  try {
    const { version, lastKey } = JSON.parse(Buffer.from(text, "base64url").toString()) as Partial<Token>;
    if (typeof version === "number" && typeof lastKey === "string") return { version, lastKey };
  } catch {
    // falls through: every unreadable token is the same mistake
  }
  throw new StatusError("BadRequest", "continue key is not valid");
}
