// What a proxy has reported, by kind. Pure. Invariant: a report changes its own kind alone, and only as far as it makes sense: it goes into
// conditions, and into rules that people are told to add to a Role. Called by the proxy registry. A new kind is a field of Reports and a line
// in each table.
import { isDeepStrictEqual } from "node:util";
import { plainText } from "../../base/plain-text.ts";
import type { BacklogMessage, LockAccessMessage, ReportMessage } from "../../wire/messages.ts";

export interface Reports {
  /** The pod holds the operator's lock. */
  leader: boolean;
  /** The API server's answer about the operator's use of its renamed lock; null while it is not known. */
  lock: LockAccessMessage | null;
  backlog: BacklogMessage;
}

export const NO_REPORTS: Reports = { leader: false, lock: null, backlog: { heldNamespaces: 0, drainingWrites: 0 } };

/** What is left after a reconnection. A permission outlives a connection: only a new report changes it. */
export function reportsAfter({ lock }: Reports): Reports {
  return { ...NO_REPORTS, lock };
}

/** The reports with this one; undefined if nothing has changed, or if the kind is not known. */
export function withReport(reports: Reports, message: ReportMessage): Reports | undefined {
  const next = { ...reports, ...newsIn(message) };
  return isDeepStrictEqual(next, reports) ? undefined : next;
}

function newsIn(message: ReportMessage): Partial<Reports> {
  if ("leader" in message) return { leader: message.leader };
  if ("lock" in message) return { lock: acceptedLockAccess(message.lock) };
  if ("backlog" in message) return { backlog: message.backlog };
  return message satisfies never;
}

/** The kinds of client-go's resource locks, as in a Role. */
const RESOURCES: ReadonlySet<string> = new Set(["leases.coordination.k8s.io", "configmaps", "endpoints"]);
const VERBS: ReadonlySet<string> = new Set(["get", "list", "watch", "create", "update", "patch", "delete"]);
const MAX_REASON_CHARS = 256;

// Null, which means "not known", if it is about no lock or about no verb that an elector uses.
function acceptedLockAccess(access: LockAccessMessage): LockAccessMessage | null {
  if (!RESOURCES.has(access.resource)) return null;
  const verbs = new Set(access.deniedVerbs);
  if (!verbs.isSubsetOf(VERBS)) return null;
  return { ...access, deniedVerbs: [...verbs], reason: plainText(access.reason, MAX_REASON_CHARS) };
}
