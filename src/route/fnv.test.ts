import fc from "fast-check";
import { expect, it } from "vitest";
import { fnv1a64 } from "./fnv.ts";

it("gives the values of FNV's own test vectors", () => {
  expect(fnv1a64("")).toBe(0xcbf29ce484222325n);
  expect(fnv1a64("a")).toBe(0xaf63dc4c8601ec8cn);
  expect(fnv1a64("foobar")).toBe(0x85944171f73967e8n);
});

it("equals the definition, byte by byte in UTF-8", () => {
  const byDefinition = (text: string) => {
    let hash = 0xcbf29ce484222325n;
    for (const byte of new TextEncoder().encode(text)) hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n);
    return hash;
  };
  fc.assert(
    fc.property(fc.string({ unit: "binary", maxLength: 70 }), (text) => {
      expect(fnv1a64(text)).toBe(byDefinition(text));
    }),
    { numRuns: 500 },
  );
});
