// Exceptions of a rule (`except`). Pure. Invariant: a request that names no object, such as a deletecollection or a
// create, is no exception by name, since it may be about any object.
import type { RequestException } from "./policy.ts";
import type { Action } from "./policy-request.ts";

/** @param user names the caller, as the API server knows it; called only if an exception needs it */
export function isExcepted(
  exceptions: readonly RequestException[],
  { namespace, name }: Pick<Action, "namespace" | "name">,
  user: () => string,
): boolean {
  return exceptions.some(({ namespaces, names, users }) => {
    if (namespaces !== undefined && !namespaces.includes(namespace)) return false;
    if (names !== undefined && (name === "" || !names.includes(name))) return false;
    return users === undefined || users.includes(user());
  });
}
