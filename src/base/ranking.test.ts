import fc from "fast-check";
import { expect, test } from "vitest";
import { budget } from "../../test/support/fuzz.ts";
import { createRanking } from "./ranking.ts";

test("the top is an item with the highest level, whatever moves", () => {
  const move = fc.record({ item: fc.integer({ min: 0, max: 9 }), level: fc.nat(20) });
  fc.assert(
    fc.property(fc.array(move), (moves) => {
      const ranking = createRanking<number>();
      const levels = new Map<number, number>();
      for (const { item, level } of moves) {
        ranking.move(item, level);
        levels.set(item, level);
        const highest = Math.max(...levels.values());
        expect(ranking.topLevel).toBe(highest);
        expect(ranking.top === undefined ? 0 : levels.get(ranking.top)).toBe(highest);
      }
    }),
    budget(),
  );
});
