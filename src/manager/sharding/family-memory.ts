// Remembers what follows from the configs of a family, so that a status, which the manager writes after each
// step of each shard, checks no config again. Invariant: a result is used again only if no config differs in
// its spec, owners, labels, annotations or placement, and the family has the same conflicts with others.
import type { ShardingConfig } from "../../api/sharding-config.ts";
import type { Family } from "./family.ts";

/** Stands for all versions of one config that have the same spec, owners, labels, annotations and placement. */
type Edition = object;

interface Known<T> {
  readonly editions: readonly Edition[];
  readonly problems: readonly string[];
  readonly result: T;
}

/** @param make must not read the status of a config, except for its placement */
export function createFamilyMemory<T>(make: (family: Family) => T) {
  const editions = new WeakMap<ShardingConfig, Edition>();
  const results = new WeakMap<Edition, Known<T>>();
  const editionOf = (config: ShardingConfig): Edition => {
    const edition = editions.get(config) ?? {};
    editions.set(config, edition);
    return edition;
  };
  return {
    of(family: Family): T {
      const own = family.configs.map(editionOf);
      const [first = {}] = own;
      const last = results.get(first);
      if (last !== undefined && isSame(last.editions, own) && isSame(last.problems, family.problems)) return last.result;
      const result = make(family);
      results.set(first, { editions: own, problems: family.problems, result });
      return result;
    },
    keep(before: ShardingConfig, after: ShardingConfig): void {
      const edition = editions.get(before);
      if (edition !== undefined && contentOf(before) === contentOf(after)) editions.set(after, edition);
    },
  };
}

function contentOf({ metadata, spec, status }: ShardingConfig): string {
  const { uid, generation, deletionTimestamp, ownerReferences, labels, annotations } = metadata;
  const stored = (status as { readonly placement?: unknown } | undefined)?.placement;
  return JSON.stringify([uid, generation, deletionTimestamp, ownerReferences, labels, annotations, spec, stored]);
}

function isSame<T>(a: readonly T[], b: readonly T[]): boolean {
  return a.length === b.length && a.every((each, at) => each === b[at]);
}
