import { expect, it } from "vitest";
import { mixedHash } from "./mixed-hash.ts";

it("never changes, since stored placements depend on it", () => {
  expect(mixedHash("default", "bucket")).toBe(655_316_300);
  expect(mixedHash("default", "canary")).toBe(2_269_929_608);
  expect(mixedHash("", "")).toBe(2_872_998_923);
  expect(mixedHash("team-é", "bucket")).toBe(3_264_732_690);
});

it("spreads names that differ in their last digits evenly over the high bits and the low bits", () => {
  const hashes = Array.from({ length: 16_000 }, (_, index) => mixedHash(`team-${index}`, "bucket"));
  for (const part of [(hash: number) => hash >>> 28, (hash: number) => hash & 15]) {
    const counts = new Array<number>(16).fill(0);
    for (const hash of hashes) counts[part(hash)] = (counts[part(hash)] ?? 0) + 1;
    // The standard deviation of a random spread is 31.
    for (const count of counts) expect(Math.abs(count - 1000)).toBeLessThan(150);
  }
});
