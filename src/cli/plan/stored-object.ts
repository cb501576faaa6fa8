// What `kubectl apply` keeps of a stored object. Pure.
import type { KubeObject } from "../../kube/types.ts";

type Texts = Readonly<Record<string, string>>;

/** Labels or annotations that a file does not name stay. A text that is null takes the stored one away. */
export function applied(stored: Texts | undefined, file: Texts | null | undefined): Texts {
  return Object.fromEntries(Object.entries({ ...stored, ...file }).filter(([, text]) => text !== null));
}

export function isSameObject(a: KubeObject, b: KubeObject): boolean {
  return a.metadata.namespace === b.metadata.namespace && a.metadata.name === b.metadata.name;
}
