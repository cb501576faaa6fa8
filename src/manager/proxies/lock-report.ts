// What a proxy reports about its lock's permission, as far as it is taken: it goes into a condition and into rules that people
// are told to add to a Role. Pure. Called by the proxy registry.
import { plainText } from "../../base/plain-text.ts";
import type { LockAccessMessage } from "../../wire/messages.ts";

/** The kinds of client-go's resource locks, as in a Role. */
const RESOURCES: ReadonlySet<string> = new Set(["leases.coordination.k8s.io", "configmaps", "endpoints"]);
const VERBS: ReadonlySet<string> = new Set(["get", "list", "watch", "create", "update", "patch", "delete"]);
const MAX_REASON_CHARS = 256;

/** The access; null, which stands for "not known", if it is about no lock or about no verb that an elector uses. */
export function acceptedLockAccess(access: LockAccessMessage | null): LockAccessMessage | null {
  if (access === null || !RESOURCES.has(access.resource)) return null;
  const verbs = new Set(access.deniedVerbs);
  if (!verbs.isSubsetOf(VERBS)) return null;
  return { ...access, deniedVerbs: [...verbs], reason: plainText(access.reason, MAX_REASON_CHARS) };
}
