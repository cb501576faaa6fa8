// One value for each resource, bounded in number. Clients choose paths freely, so a resource gets a value of
// its own only after the API server has answered for it, and all resources beyond the bound share one.
import type { RequestInfo } from "../../kube/request-info.ts";

/**
 * Makes the function from requests to what `make` makes; it remembers which resources exist. `asked` is true
 * for an answer of the API server's: what the proxy answers itself says nothing about whether there is such a
 * resource.
 * @param maxResources how many get their own
 */
export function byResource<T>(
  maxResources: number,
  make: (group: string, resource: string) => T,
): (info: RequestInfo | undefined, code: number, asked: boolean) => T {
  const groups = new Map<string, Map<string, T>>();
  const none = make("", "");
  const other = make("other", "other");
  let knownCount = 0;
  return (info, code, asked) => {
    if (info?.kind !== "resource") return none;
    const { group, resource } = info;
    const knownValue = groups.get(group)?.get(resource);
    if (knownValue !== undefined) return knownValue;
    if (!asked || code >= 300 || knownCount >= maxResources) return other;
    knownCount++;
    const made = make(group, resource);
    const resources = groups.get(group);
    if (resources === undefined) groups.set(group, new Map([[resource, made]]));
    else resources.set(resource, made);
    return made;
  };
}

/** The verb of a request as a label. */
export function verbOf(info: RequestInfo | undefined): string {
  return info === undefined ? "unreadable" : info.verb;
}

/** A map that makes what it does not have. */
export function lazily<K, V>(make: (key: K) => V): (key: K) => V {
  const made = new Map<K, V>();
  return (key) => {
    let value = made.get(key);
    if (value === undefined) {
      value = make(key);
      made.set(key, value);
    }
    return value;
  };
}
