// So many at a time, the others in turn: simulated proxies have one processor for hundreds, and real ones one each.

export interface Slots {
  /** Resolves with what gives the slot back; calling it again does nothing. */
  take(): Promise<() => void>;
}

export function createSlots(count: number): Slots {
  const waiting: (() => void)[] = [];
  let free = count;
  const giveBack = () => {
    const next = waiting.shift();
    if (next === undefined) free++;
    else next();
  };
  return {
    async take() {
      if (free > 0) free--;
      else await new Promise<void>((resolve) => waiting.push(resolve));
      let isHeld = true;
      return () => {
        if (isHeld) giveBack();
        isHeld = false;
      };
    },
  };
}
