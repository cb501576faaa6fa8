import { expect, it } from "vitest";
import type { ResourceType, Versioned } from "../../wire/resource-type.ts";
import { createUpdateBodies } from "./update-bodies.ts";

/** A type that counts how often it encodes. */
function countingType(name: string, bytes = 1) {
  const encoded: string[] = [];
  const type: ResourceType<Versioned> = {
    name,
    encode({ digest }) {
      encoded.push(digest);
      return Buffer.alloc(bytes);
    },
    decode: (_, head) => head,
    delta: {
      capability: "delta",
      encode(base, next) {
        encoded.push(`${base.digest}>${next.digest}`);
        return undefined;
      },
      apply: (_base, _body, head) => head,
    },
  };
  return { type, encoded };
}
const of = (digest: string, version = 1): Versioned => ({ version, digest });

it("encodes a resource once for all proxies, whatever its version", () => {
  const { type, encoded } = countingType("route");
  const bodies = createUpdateBodies();
  expect(bodies.whole(type, of("a", 2))).toBe(bodies.whole(type, of("a")));
  expect(encoded).toEqual(["a"]);
});

it("remembers that there is no delta, and keeps deltas apart from wholes and by direction", () => {
  const { type, encoded } = countingType("route");
  const bodies = createUpdateBodies();
  for (let round = 0; round < 2; round++) {
    expect(bodies.delta(type, of("a"), of("b"))).toBeUndefined();
    expect(bodies.delta(type, of("b"), of("a"))).toBeUndefined();
    expect(bodies.whole(type, of("b"))).toBeDefined();
  }
  expect(encoded).toEqual(["a>b", "b>a", "b"]);
});

it("keeps types with equal digests apart", () => {
  const [route, policy] = [countingType("route"), countingType("policy")];
  const bodies = createUpdateBodies();
  bodies.whole(route.type, of("a"));
  bodies.whole(policy.type, of("a"));
  expect([route.encoded, policy.encoded]).toEqual([["a"], ["a"]]);
});

it("forgets the least recently used body beyond 32 MiB", () => {
  const { type, encoded } = countingType("route", 12 * 1024 * 1024);
  const bodies = createUpdateBodies();
  for (const digest of ["a", "b", "a", "c", "a", "b"]) bodies.whole(type, of(digest));
  expect(encoded).toEqual(["a", "b", "c", "b"]);
});
