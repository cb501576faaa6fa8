// A budget that many clients share. Invariant: after a client takes something, it has no more than what is
// left for all others. So the first client gets at most half, and each later client still finds something.

export type FairBudget = ReturnType<typeof createFairBudget>;

export function createFairBudget(max: number) {
  let free = max;
  const shares = new Map<string, number>();
  return {
    /** Takes the amount. False if the client would have too much: then nothing is taken. */
    take(client: string, amount: number): boolean {
      const share = (shares.get(client) ?? 0) + amount;
      if (share > free - amount) return false;
      free -= amount;
      shares.set(client, share);
      return true;
    },
    give(client: string, amount: number): void {
      free += amount;
      const share = (shares.get(client) ?? 0) - amount;
      if (share > 0) shares.set(client, share);
      else shares.delete(client);
    },
  };
}
