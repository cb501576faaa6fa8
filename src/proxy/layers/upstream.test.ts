import { expect, it } from "vitest";
import { callOf, fakeUpstream, jsonReply } from "../../../test/support/layer-call.ts";
import { upstreamHandler } from "./upstream.ts";

it("marks what the API server was asked, and answers an upgrade with the intent to connect", async () => {
  const send = fakeUpstream(() => jsonReply({}));
  const call = callOf("GET", "/api/v1/pods");
  await upstreamHandler({ send })(call);
  expect([send.calls, call.record.asked]).toEqual([[call], true]);
  const exec = callOf("GET", "/api/v1/namespaces/a/pods/p/exec", { upgrade: "websocket" });
  expect(await upstreamHandler({ send })(exec)).toEqual({ status: 101, headers: {}, body: null, tunnel: exec });
  expect(send.calls).toHaveLength(1);
});
