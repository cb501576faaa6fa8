// The whole history of one resource: what existed at each version. For the model test of watches.
import type { ServedObject } from "../../support/simulated-server.ts";

export interface Change {
  /** "OTHER": of an object that nobody reads, so that only the version grows. */
  readonly type: "ADDED" | "MODIFIED" | "DELETED" | "OTHER";
  readonly version: number;
  readonly object: ServedObject;
}

export interface History {
  readonly apiVersion: string;
  readonly kind: string;
  /** The newest version. */
  readonly head: number;
  /** True for a version that can no longer be listed. */
  isCompacted(version: number): boolean;
  /** The existing objects, by `namespace/name`, each with its last change. */
  stateAt(version: number): ReadonlyMap<string, Change>;
  /** The change that follows the version. Undefined at the head. */
  after(version: number): Change | undefined;
  /** Creates or changes the object. Returns its version. */
  write(namespace: string, name: string): number;
  /** Deletes the object. Returns the version; undefined if there is none. */
  remove(namespace: string, name: string): number | undefined;
  /** Something that nobody reads is written. */
  tick(): void;
  /** From this call on, earlier versions can no longer be listed. */
  compact(): void;
}

export const keyOf = ({ namespace, name }: ServedObject) => `${namespace}/${name}`;

/** @param first the version before the first change; never 0 */
export function createHistory(apiVersion: string, kind: string, first: number): History {
  const changes: Change[] = [];
  let compactedTo = 0;
  const head = () => first + changes.length;
  const add = (type: Change["type"], namespace: string, name: string) => {
    changes.push({ type, version: head() + 1, object: { namespace, name } });
    return head();
  };
  const stateAt = (version: number) => {
    const state = new Map<string, Change>();
    for (const change of changes.slice(0, version - first)) {
      if (change.type === "DELETED") state.delete(keyOf(change.object));
      else if (change.type !== "OTHER") state.set(keyOf(change.object), change);
    }
    return state;
  };
  const has = (namespace: string, name: string) => stateAt(head()).has(keyOf({ namespace, name }));
  return {
    apiVersion,
    kind,
    get head() {
      return head();
    },
    isCompacted: (version) => version <= compactedTo,
    stateAt,
    after: (version) => changes[version - first],
    write: (namespace, name) => add(has(namespace, name) ? "MODIFIED" : "ADDED", namespace, name),
    remove: (namespace, name) => (has(namespace, name) ? add("DELETED", namespace, name) : undefined),
    tick: () => void add("OTHER", "", ""),
    compact() {
      compactedTo = head() - 1;
    },
  };
}
