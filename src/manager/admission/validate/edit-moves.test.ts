import { expect, it } from "vitest";
import { createMoveLimit } from "./edit-moves.ts";

function setUp() {
  const limit = createMoveLimit();
  const ends: (() => void)[] = [];
  const ask = (address: string) =>
    limit(address, async () => {
      await new Promise<void>((resolve) => ends.push(resolve));
      return "moves";
    });
  return { limit, ends, ask };
}

it("an address has one question under way, and the next after its end", async () => {
  const { ends, ask } = setUp();
  const first = ask("10.0.0.1");
  expect(await ask("10.0.0.1")).toBeUndefined();
  ends.shift()?.();
  expect(await first).toBe("moves");
  const next = ask("10.0.0.1");
  ends.shift()?.();
  expect(await next).toBe("moves");
});

it("a hundred addresses have eight questions under way together, and all get their turn later", async () => {
  const { ends, ask } = setUp();
  const answers = Array.from({ length: 100 }, (_, at) => ask(`10.0.0.${at}`));
  expect(ends).toHaveLength(8);
  for (const end of ends.splice(0)) end();
  expect((await Promise.all(answers)).filter((answer) => answer !== undefined)).toHaveLength(8);
  const late = ask("10.0.0.99");
  ends.shift()?.();
  expect(await late).toBe("moves");
});

it("a question that fails leaves room for the next", async () => {
  const { limit } = setUp();
  for (let each = 0; each < 10; each++) {
    await expect(limit("10.0.0.1", () => Promise.reject(new Error("no")))).rejects.toThrow("no");
  }
});
