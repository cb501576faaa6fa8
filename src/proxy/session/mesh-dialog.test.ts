import { expect, it } from "vitest";
import { eventually } from "../../../test/support/eventually.ts";
import { collectGarbage } from "../../base/collect-garbage.ts";
import { silentLogger } from "../../base/log.ts";
import type { ProxyMessage, RegistrationMessage } from "../../mesh/contract/messages.ts";
import { createMeshDialog } from "./mesh-dialog.ts";

const registration: RegistrationMessage = {
  pod: { namespace: "shop", name: "shop-0", uid: "" },
  proxyVersion: "1",
  capabilities: [],
  streamNumber: 1,
  epoch: 0,
  route: null,
};

// A function of its own: the closures of one function share what they keep.
function greet() {
  const table = new Uint8Array(1_000);
  return { greeting: { registration, tablesFor: () => [table] }, ref: new WeakRef(table) };
}

function begin() {
  const { greeting, ref } = greet();
  let sent = 0;
  const dialog = createMeshDialog({ endpoint: "x", greeting, promise: async () => true, handlers: {}, log: silentLogger() });
  const send = (message: ProxyMessage) => {
    if ("promise" in message) sent++;
  };
  dialog.answerOn({ send, close: () => undefined });
  return { dialog, ref, sent: () => sent };
}

it("a stream that is followed for days does not keep the tables of its registration", async () => {
  const { dialog, sent, ref } = begin();
  dialog.take({ welcome: { epoch: 1, wantedTables: [], types: [] } });
  await eventually(() => expect(sent()).toBe(1));
  await eventually(() => {
    collectGarbage();
    expect(ref.deref()).toBeUndefined();
  });
  expect(dialog.isFollowing).toBe(true);
});
