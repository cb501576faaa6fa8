import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { snapshot, subset, table } from "../../../test/support/route-table.ts";
import type { Snapshot } from "../../route/snapshot.ts";
import { loadMeshService } from "../../wire/load-proto.ts";
import type { HelloMessage, ProxyMessage } from "../../wire/messages.ts";
import { snapshotToWire } from "../../wire/snapshot-codec.ts";
import { createHelloDecoder } from "./hello-decoder.ts";

const { Connect: method } = loadMeshService();
if (method === undefined) throw new Error("the contract has no method Connect");
const encode = (message: ProxyMessage): Buffer => method.requestSerialize(message);
const plain = (bytes: Buffer) => method.requestDeserialize(bytes) as ProxyMessage;
const routes = (count: number) =>
  table([subset("canary")], Object.fromEntries(Array.from({ length: count }, (_, index) => [`namespace-${index}`, [0]])));
const hello = (enforced: Snapshot | null, inDoubt: readonly Snapshot[] = []): HelloMessage => ({
  pod: { namespace: "shop", name: "app-0", uid: "uid-1" },
  version: enforced?.version ?? 0,
  digest: enforced?.digest ?? "",
  proxyVersion: "test",
  enforced: enforced && snapshotToWire(enforced, 0),
  inDoubt: inDoubt.map((row) => snapshotToWire(row, 0)),
  stream: 7,
  takesDeltas: true,
  epoch: 3,
  takesEpochs: true,
});
const helloOf = (message: ProxyMessage): HelloMessage => {
  if (!("hello" in message)) throw new Error("no hello");
  return message.hello;
};

describe("the decoder of hellos", () => {
  it("gives what the contract's decoder gives", () => {
    const decode = createHelloDecoder(plain);
    const big = snapshot(routes(200));
    for (const message of [
      { hello: hello(null) },
      { hello: hello(big) },
      { hello: hello(big, [snapshot(routes(150), { version: 2 }), snapshot(routes(1), { version: 3 })]) },
      { hello: hello(null, [big]) },
      { ack: { nonce: 3, version: 2 } },
      { nack: { nonce: 3, version: 2, problems: ["x".repeat(2_000)], needsSnapshot: true } },
    ]) {
      const bytes = encode(message);
      expect(decode(bytes)).toEqual(plain(bytes));
      expect(decode(bytes)).toEqual(plain(bytes));
    }
  });
  it("decodes a table that many bring only once, whatever version they bring it with", () => {
    let decodedBytes = 0;
    const decode = createHelloDecoder((bytes) => {
      decodedBytes += bytes.length;
      return plain(bytes);
    });
    const one = helloOf(decode(encode({ hello: hello(snapshot(routes(2_000))) })));
    const first = decodedBytes;
    const two = helloOf(decode(encode({ hello: hello(snapshot(routes(2_000), { version: 9, subset: "canary" })) })));
    expect(two.enforced?.table).toBe(one.enforced?.table);
    expect(two.enforced).toMatchObject({ version: 9, subset: "canary" });
    expect(decodedBytes - first).toBeLessThan(300);
  });
  // The contract's decoder reads past the end of a nested message that is too short, ours does not: one of them may refuse.
  it("never reads anything else than the contract's decoder, whatever the bytes", () => {
    const decode = createHelloDecoder(plain);
    const good = encode({ hello: hello(snapshot(routes(100)), [snapshot(routes(90))]) });
    const outcome = (read: (bytes: Buffer) => ProxyMessage, bytes: Buffer) => {
      try {
        return JSON.stringify(read(bytes));
      } catch {
        return "refused";
      }
    };
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(good.length - 1), fc.nat(255)), { maxLength: 3 }), (changes) => {
        const bytes = Buffer.from(good);
        for (const [at, value] of changes) bytes[at] = value;
        const [ours, theirs] = [outcome(decode, bytes), outcome(plain, bytes)];
        if (ours !== "refused" && theirs !== "refused") expect(ours).toBe(theirs);
      }),
      { numRuns: 2_000 },
    );
  });
});
