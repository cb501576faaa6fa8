import { expect, it } from "vitest";
import { callOf, fakeUpstream, jsonReply, upgraded } from "../../../test/support/layer-call.ts";
import { upstream } from "./upstream.ts";

const unused = () => Promise.reject(new Error("there is no next layer"));

it("marks what the API server was asked, and answers an upgrade with the intent to connect", async () => {
  const send = fakeUpstream(() => jsonReply({}));
  const call = callOf("GET", "/api/v1/pods");
  const answer = upstream({ send, upgrade: upgraded })(unused);
  await answer(call);
  expect([send.calls, call.record.asked]).toEqual([[call], true]);
  const exec = callOf("GET", "/api/v1/namespaces/a/pods/p/exec", { upgrade: "websocket" });
  expect(await answer(exec)).toEqual(upgraded(exec));
  expect(send.calls).toHaveLength(1);
});
