import fc from "fast-check";
import { expect, it } from "vitest";
import { budget } from "../../test/support/fuzz.ts";
import { classesToBytes } from "./class-bytes.ts";
import { ROUTE_TABLE_MESSAGE } from "./load-proto.ts";

const NO_TABLE = { rules: [], sharedResources: [], fenced: [], retained: [] };

it("gives the bytes of the general encoder, for any rules and any names", () => {
  const name = fc.oneof(
    fc.stringMatching(/^[a-z0-9-]{0,63}$/),
    fc.string(),
    fc.string({ unit: "grapheme", minLength: 100, maxLength: 200 }),
  );
  const row = fc.record({
    rules: fc.array(fc.oneof(fc.nat(200), fc.nat(100_000)), { maxLength: 200 }),
    namespaces: fc.array(name, { maxLength: 300 }),
  });
  fc.assert(
    fc.property(fc.array(row, { maxLength: 4 }), (classes) => {
      expect(Buffer.from(classesToBytes(2, classes)).equals(ROUTE_TABLE_MESSAGE.encode({ ...NO_TABLE, classes }))).toBe(true);
    }),
    budget(),
  );
});
