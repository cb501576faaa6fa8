// What a proxy reports about its lock's permission, as far as it is taken: it goes into a condition and into rules that people
// are told to add to a Role. Pure. Called by the proxy registry.
import { plainText } from "../../base/plain-text.ts";
import type { LockReviewMessage } from "../../wire/messages.ts";

/** The kinds of client-go's resource locks, as in a Role. */
const RESOURCES: ReadonlySet<string> = new Set(["leases.coordination.k8s.io", "configmaps", "endpoints"]);
const VERBS: ReadonlySet<string> = new Set(["get", "list", "watch", "create", "update", "patch", "delete"]);
const MAX_REASON_CHARS = 256;

/** The review; null, which stands for "not known", if it is about no lock or about no verb that an elector uses. */
export function acceptedReview(review: LockReviewMessage | null): LockReviewMessage | null {
  if (review === null || !RESOURCES.has(review.resource)) return null;
  const verbs = new Set(review.deniedVerbs);
  if (!verbs.isSubsetOf(VERBS)) return null;
  return { ...review, deniedVerbs: [...verbs], reason: plainText(review.reason, MAX_REASON_CHARS) };
}
