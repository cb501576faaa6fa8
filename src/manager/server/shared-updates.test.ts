import { expect, it } from "vitest";
import { eventually } from "../../../test/support/eventually.ts";
import { collectGarbage } from "../../base/collect-garbage.ts";
import type { ManagerMessage } from "../../mesh/contract/messages.ts";
import type { ResourceType, Versioned } from "../../mesh/contract/resource-type.ts";
import { createSharedUpdates, encodeUpdatesOnce } from "./shared-resources.ts";

/** A type that counts how often it encodes. */
function countingType(name: string, delta?: Uint8Array) {
  const encoded: string[] = [];
  const type: ResourceType<Versioned> = {
    name,
    encode({ digest }) {
      encoded.push(digest);
      return Buffer.from(digest);
    },
    decode: (_, head) => head,
    delta: {
      capability: "delta",
      encode(base, next) {
        encoded.push(`${base.digest}>${next.digest}`);
        return delta;
      },
      apply: (_base, _body, head) => head,
    },
  };
  return { type, encoded };
}
const of = (digest: string, version = 1): Versioned => ({ version, digest });

it("streams that get the same update share one message, encoded once", () => {
  const { type, encoded } = countingType("route", Buffer.from("delta"));
  const updates = createSharedUpdates();
  const wholes = [0, 0, 0].map((lastNonce) => updates.get(type, undefined, of("b"), lastNonce));
  const deltas = [1, 1, 1].map((lastNonce) => updates.get(type, of("a"), of("b"), lastNonce));
  expect([new Set(wholes).size, new Set(deltas).size]).toEqual([1, 1]);
  expect(wholes[0]).toMatchObject({ nonce: 1, baseDigest: "", resource: { type: "route", version: 1, digest: "b" } });
  expect(deltas[0]).toMatchObject({ nonce: 2, baseDigest: "a", resource: { body: Buffer.from("delta") } });
  expect(encoded).toEqual(["b", "a>b"]);
});

it("a missing delta is looked for once: all streams share the whole", () => {
  const { type, encoded } = countingType("route");
  const updates = createSharedUpdates();
  const whole = updates.get(type, of("a"), of("b"), 0);
  expect(updates.get(type, of("a"), of("b"), 0)).toBe(whole);
  expect(updates.get(type, undefined, of("b"), 0)).toBe(whole);
  expect(whole.baseDigest).toBe("");
  expect(encoded).toEqual(["a>b", "b"]);
});

it("each type, version and base has an update of its own, and each type its own nonces", () => {
  const [route, policy] = [countingType("route", Buffer.from("delta")), countingType("policy")];
  const updates = createSharedUpdates();
  const all = [
    updates.get(route.type, undefined, of("b"), 0),
    updates.get(policy.type, undefined, of("b"), 0),
    updates.get(route.type, undefined, of("b", 2), 0),
    updates.get(route.type, of("a"), of("b"), 0),
    updates.get(route.type, of("c"), of("b"), 0),
  ];
  expect(new Set(all).size).toBe(all.length);
  expect(all.map(({ nonce }) => nonce)).toEqual([1, 1, 2, 3, 4]);
});

it("a stream that gets an update again gets another nonce, and later streams share that one", () => {
  const { type } = countingType("route");
  const updates = createSharedUpdates();
  const first = updates.get(type, undefined, of("a"), 0);
  const second = updates.get(type, undefined, of("a"), first.nonce);
  expect(second.nonce).toBeGreaterThan(first.nonce);
  expect(updates.get(type, undefined, of("a"), 0)).toBe(second);
});

it("an update that no stream waits for is forgotten", async () => {
  const { type } = countingType("route");
  const updates = createSharedUpdates();
  const held = updates.get(type, undefined, of("a"), 0);
  const answered = (() => new WeakRef(updates.get(type, undefined, of("b"), 0)))(); // the frame of an async test may keep the update
  await eventually(() => {
    collectGarbage();
    return answered.deref() === undefined;
  });
  expect(updates.get(type, undefined, of("a"), 0)).toBe(held);
});

it("the bytes of a shared update are made once; other messages are encoded each time", () => {
  let encodings = 0;
  const encode = encodeUpdatesOnce((message) => Buffer.from(JSON.stringify([++encodings, message])));
  const update = createSharedUpdates().get(countingType("route").type, undefined, of("a"), 0);
  const welcome: ManagerMessage = { welcome: { epoch: 1, wantedTables: [], types: [] } };
  expect(encode({ update })).toBe(encode({ update }));
  expect(encode({ update: { ...update } })).not.toBe(encode({ update }));
  expect(encode(welcome)).not.toBe(encode(welcome));
  expect(encodings).toBe(4);
});
