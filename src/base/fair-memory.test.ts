import { describe, expect, it } from "vitest";
import { createFairMemory, type MemoryHold } from "./fair-memory.ts";

function setup(maxBytes: number) {
  const memory = createFairMemory(maxBytes);
  const cuts: string[] = [];
  const hold = (client: string, name = client): MemoryHold => {
    const mine: MemoryHold = memory.of(client).hold(() => {
      cuts.push(name);
      mine.end();
    });
    return mine;
  };
  return { memory, cuts, hold };
}

describe("a budget of memory", () => {
  it("is all for one client while no other needs it", () => {
    const { cuts, hold, memory } = setup(100);
    hold("a").set(100);
    expect([cuts, memory.heldBytes]).toEqual([[], 100]);
  });

  it("cuts a client that alone exceeds it", () => {
    const { cuts, hold, memory } = setup(100);
    hold("a").set(101);
    expect([cuts, memory.heldBytes]).toEqual([["a"], 0]);
  });

  it("takes the largest hold of the client that has most for one that has less", () => {
    const { cuts, hold, memory } = setup(100);
    hold("a", "a small").set(30);
    hold("a", "a large").set(50);
    hold("b").set(40);
    expect([cuts, memory.heldBytes]).toEqual([["a large"], 70]);
  });

  it("cuts the client that grows if it has most itself", () => {
    const { cuts, hold } = setup(100);
    hold("a").set(45);
    const b = hold("b");
    b.set(50);
    b.set(60);
    expect(cuts).toEqual(["b"]);
  });

  it("never cuts a client that holds an equal share, whatever all others try", () => {
    const { cuts, hold, memory } = setup(330);
    const good = hold("good");
    good.set(10);
    for (let round = 0; round < 50; round++)
      for (let i = 0; i < 32; i++) hold(`bad-${i}`, `bad-${i}`).set(1 + ((round * 7 + i) % 300));
    expect(cuts).not.toContain("good");
    expect(memory.heldBytes).toBeLessThanOrEqual(330);
  });

  it("counts what is given back, once, and nothing after the end", () => {
    const { cuts, hold, memory } = setup(100);
    const a = hold("a");
    a.set(80);
    a.set(20);
    expect(memory.heldBytes).toBe(20);
    a.end();
    a.end();
    a.set(1_000);
    expect([cuts, memory.heldBytes]).toEqual([[], 0]);
  });
});
