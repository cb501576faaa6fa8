import { expect, it } from "vitest";
import { silentLogger } from "../../base/log.ts";
import type { UpdateMessage } from "../../mesh/contract/messages.ts";
import { PEERS, type PodPeer } from "../../mesh/contract/peer-type.ts";
import { createPeersHandler } from "./peers-handler.ts";

const peer = (name: string): PodPeer => ({
  namespace: "ops",
  name,
  uid: `uid-${name}`,
  address: "10.0.0.1",
  subset: "",
  isReady: true,
});

function take(...updates: readonly Uint8Array[]) {
  const handler = createPeersHandler("uid-own", silentLogger());
  const answers: unknown[] = [];
  for (const body of updates) {
    const update = { resource: { version: 1, digest: "d", body }, baseDigest: "" } as unknown as UpdateMessage;
    handler.take(update, {
      ack: () => void answers.push("ack"),
      nack: (problems) => void answers.push(problems),
      needsWhole: () => void answers.push("whole"),
    });
  }
  return { answers, names: handler.peers.current.map(({ name }) => name) };
}
const bodyOf = (...names: string[]) => PEERS.encode({ version: 1, digest: "d", peers: names.map(peer) });

it("takes each list as a whole, without this pod", () => {
  expect(take(bodyOf("a", "own"), bodyOf("b", "own"))).toEqual({ answers: ["ack", "ack"], names: ["b"] });
});

it("keeps the last good list, and names what it cannot read", () => {
  const { answers, names } = take(bodyOf("a"), Buffer.from('{"peers":[{}]}'));
  expect(names).toEqual(["a"]);
  expect(answers).toEqual(["ack", expect.arrayContaining([expect.stringContaining("peers.0.address")])]);
});
