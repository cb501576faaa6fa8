// A budget that many clients share. Invariant: a client that takes something has no more than what is left
// for all others. So the first gets half at most, the next a quarter, and so on: whoever comes next finds
// something, if little. Callers do not charge what everybody must get.

export interface FairBudget {
  /** Takes the amount. False if the client would have more than its share: then nothing is taken. */
  take(client: string, amount: number): boolean;
  /** Returns what was taken. */
  give(client: string, amount: number): void;
}

export function createFairBudget(max: number): FairBudget {
  let free = max;
  const shares = new Map<string, number>();
  return {
    take(client, amount) {
      const share = (shares.get(client) ?? 0) + amount;
      if (share > free - amount) return false;
      free -= amount;
      shares.set(client, share);
      return true;
    },
    give(client, amount) {
      free += amount;
      const share = (shares.get(client) ?? 0) - amount;
      if (share > 0) shares.set(client, share);
      else shares.delete(client);
    },
  };
}
