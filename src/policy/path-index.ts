// An index of values by paths. Pure. Invariant: a look-up reads no more segments than the longest path in the
// index has, so a long path costs as little as a short one.
import { type Reading, segmentsOf } from "./path-form.ts";

interface Node<V> {
  readonly children: Map<string, Node<V>>;
  /** Values for this path. */
  readonly here: V[];
  /** Values for this path and everything below it. */
  readonly below: V[];
}

export type PathIndex<V> = ReturnType<typeof createPathIndex<V>>;

export function createPathIndex<V>() {
  const root = createNode<V>();
  return {
    /** @param isTree the value is for everything below the path too */
    add(path: string, isTree: boolean, value: V): void {
      let node = root;
      for (const segment of segmentsOf(path)) {
        const child = node.children.get(segment) ?? createNode();
        node.children.set(segment, child);
        node = child;
      }
      (isTree ? node.below : node.here).push(value);
    },
    find(path: string, reading?: Reading): readonly V[] {
      const found = [...root.below];
      let node = root;
      for (const segment of segmentsOf(path, reading)) {
        const child = node.children.get(segment);
        if (child === undefined) return found;
        node = child;
        found.push(...node.below);
      }
      return [...found, ...node.here];
    },
  };
}

function createNode<V>(): Node<V> {
  return { children: new Map(), here: [], below: [] };
}
