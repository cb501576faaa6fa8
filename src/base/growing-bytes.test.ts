import fc from "fast-check";
import { expect, it } from "vitest";
import { createGrowingBytes } from "./growing-bytes.ts";

it("holds what arrived, in any chunks, and takes the memory that it announces", () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 9_000 }), { maxLength: 20 }), (chunks) => {
      const whole = Buffer.concat(chunks);
      const growing = createGrowingBytes(whole.length);
      let capacity = 0;
      for (const chunk of chunks) {
        capacity += growing.growthBy(chunk.length);
        growing.push(chunk);
        expect(growing.bytes.buffer.byteLength).toBe(capacity);
      }
      expect(growing.bytes).toEqual(whole);
      expect(capacity).toBeLessThanOrEqual(whole.length);
    }),
  );
});

it("a body of single bytes takes no more than four times its length", () => {
  const growing = createGrowingBytes(1_000_000);
  let capacity = 0;
  for (let at = 0; at < 100_000; at++) {
    capacity += growing.growthBy(1);
    growing.push(Uint8Array.of(at));
  }
  expect(growing.bytes.length).toBe(100_000);
  expect(capacity).toBeLessThanOrEqual(400_000);
});
