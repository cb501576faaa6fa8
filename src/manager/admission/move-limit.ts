// The limit of the questions what an edit moves. Any pod can ask them, and each takes up to a second of
// computing. Invariant: one question of an address and MAX_AT_ONCE together are under way. An edit beyond
// that passes without a warning: warnings are a courtesy. Used by checked-namespaces.ts and count-moves.ts.

/** Answers the question; undefined if there is no room. */
export type MoveLimit = <T>(address: string, question: () => Promise<T>) => Promise<T | undefined>;

const MAX_AT_ONCE = 8;

export function createMoveLimit(): MoveLimit {
  const asking = new Set<string>();
  return async (address, question) => {
    if (asking.has(address) || asking.size >= MAX_AT_ONCE) return undefined;
    asking.add(address);
    try {
      return await question();
    } finally {
      asking.delete(address);
    }
  };
}
