import { expect, it } from "vitest";
import { snapshot, subset, table } from "../../../test/support/route-table.ts";
import { loadMeshService } from "../../wire/load-proto.ts";
import type { ManagerMessage } from "../../wire/messages.ts";
import { snapshotFromWire } from "../../wire/snapshot-codec.ts";
import { diffSnapshots } from "../../wire/snapshot-delta.ts";
import { createSnapshotEncoder } from "./snapshot-encoder.ts";

const { Connect: connect } = loadMeshService();
if (connect === undefined) throw new Error("the contract has no method Connect");
const method = connect;
const members = Object.fromEntries(Array.from({ length: 300 }, (_, index) => [`namespace-${index}`, [0]]));
const routes = table([subset("canary")], members);
const read = (bytes: Buffer) => method.responseDeserialize(bytes) as ManagerMessage;

function counting() {
  const calls = { count: 0 };
  const encoder = createSnapshotEncoder((message) => {
    calls.count++;
    return method.responseSerialize(message);
  });
  return { calls, encoder };
}

it("encodes a snapshot once for all proxies and versions, as the contract's decoder reads it", () => {
  const { calls, encoder } = counting();
  for (const [version, nonce] of [
    [1, 1],
    [7, 300],
    [Number.MAX_SAFE_INTEGER, 2 ** 40 + 5],
  ] as const) {
    const whole = snapshot(routes, { version });
    const message = read(encoder.snapshot(whole, nonce));
    if (!("snapshot" in message)) throw new Error("no snapshot");
    expect(message).toMatchObject({ message: "snapshot", snapshot: { nonce, version } });
    expect(snapshotFromWire(message.snapshot)).toEqual(whole);
  }
  expect(calls.count).toBe(1);
  expect(encoder.snapshot(snapshot(routes), 5)).toBe(encoder.snapshot(snapshot(routes), 5));
});

it("encodes a delta once", () => {
  const { calls, encoder } = counting();
  const base = snapshot(routes);
  const next = snapshot(table([subset("canary")], { ...members, "namespace-3": [] }), { version: 2, digest: "digest-2" });
  const delta = diffSnapshots(base, next);
  if (delta === undefined) throw new Error("no delta");
  const [one, two] = [encoder.delta(delta, 8), encoder.delta(delta, 9)];
  expect(read(one)).toMatchObject({ message: "delta", delta: { ...delta, nonce: 8, version: 2 } });
  expect(read(two)).toMatchObject({ delta: { nonce: 9 } });
  expect([calls.count, one.length < 100]).toEqual([1, true]);
});
