import { expect, it } from "vitest";
import { PEERS, type PodPeer } from "./peer-type.ts";

const PEER: PodPeer = { namespace: "prod", name: "web-0", uid: "u", address: "10.0.0.1", subset: "canary", isReady: true };
const HEAD = { version: 3, digest: "d" };

it("reads what it has written", () => {
  const resource = { ...HEAD, peers: [PEER, { ...PEER, address: "fd00::1", isReady: false }] };
  expect(PEERS.decode(PEERS.encode(resource), HEAD)).toEqual(resource);
});

it("ignores fields of a newer version", () => {
  const body = Buffer.from(JSON.stringify({ peers: [{ ...PEER, zone: "a" }], more: [] }));
  expect(PEERS.decode(body, HEAD)).toEqual({ ...HEAD, peers: [PEER] });
});

it.each([
  ["no JSON", "{", "body"],
  ["no list", '{"peers":{}}', "peers"],
  ["no address", JSON.stringify({ peers: [{ ...PEER, address: "web.example.com" }] }), "peers.0.address"],
  ["no uid", JSON.stringify({ peers: [{ ...PEER, uid: "" }] }), "peers.0.uid"],
])("refuses %s, and names the field", (_, body, field) => {
  expect(() => PEERS.decode(Buffer.from(body), HEAD)).toThrow(field);
});

it("has equal digests for equal peers only", () => {
  expect(PEERS.digest({ peers: [PEER] })).toBe(PEERS.digest({ peers: [{ ...PEER }] }));
  expect(PEERS.digest({ peers: [PEER] })).not.toBe(PEERS.digest({ peers: [{ ...PEER, isReady: false }] }));
});
