import { describe, expect, it } from "vitest";
import { type CallOptions, callOf, fakeUpstream, upgraded } from "../../../test/support/layer-call.ts";
import { recordingSink, scriptedSource } from "../../../test/support/scripted-body.ts";
import { routes } from "../../../test/support/test-routes.ts";
import { type CallerPolicy, NO_CALLER_POLICY } from "../../mesh/ownership/snapshot.ts";
import type { ByteSource } from "../http/byte-stream.ts";
import { createEnforcer } from "../session/enforcer.ts";
import { caller } from "./caller.ts";
import { upstream as sendTo } from "./upstream.ts";

const LOGS = "/api/v1/namespaces/a/pods/x/log?follow=true";
const EXEC = "/api/v1/namespaces/a/pods/x/exec";

function setup(first: Partial<CallerPolicy>) {
  const session = createEnforcer();
  let version = 1;
  const enforce = (callers: Partial<CallerPolicy>) =>
    session.enforce(routes(version++, { blue: ["a"] }, { callers: { ...NO_CALLER_POLICY, ...callers } }));
  enforce(first);
  const body = scriptedSource();
  const upstream = fakeUpstream(() => ({ status: 200, headers: {}, body }));
  const handler = caller({ session })(sendTo({ send: upstream, upgrade: upgraded })(upstream));
  const send = (target: string, options?: CallOptions) => handler(callOf("GET", target, options));
  return { enforce, upstream, send, handler, body };
}

const from = (agent: string) => ({ headers: { "user-agent": agent } });

describe("the user agent that the API server is told", () => {
  it.each([
    ["", "foo/1", "foo/1"],
    ["shop-operator", "foo/1", "shop-operator"],
    ["mesh/", "foo/1 (linux/amd64)", "mesh/foo/1 (linux/amd64)"],
  ])("userAgentOrPrefix %s of %s is %s", async (userAgent, sent, told) => {
    const { send, upstream } = setup({ userAgent });
    await send("/version", from(sent));
    expect(upstream.calls[0]?.headers["user-agent"]).toBe(told);
  });

  it("is the value alone of an operator that sends none", async () => {
    const { send, upstream } = setup({ userAgent: "mesh/" });
    await send("/version");
    expect(upstream.calls[0]?.headers["user-agent"]).toBe("mesh/");
  });

  it("is told in upgrades too, and other headers stay", async () => {
    const { send } = setup({ userAgent: "mesh/" });
    const reply = await send(EXEC, { headers: { "user-agent": "foo", authorization: "Bearer x" }, upgrade: "websocket" });
    expect(reply.tunnel?.headers).toEqual({ "user-agent": "mesh/foo", authorization: "Bearer x" });
  });

  it("is untouched, and so is the call, where the app asks for nothing", async () => {
    const { handler, upstream } = setup({});
    const call = callOf("GET", "/version", from("foo"));
    await handler(call);
    expect(upstream.calls[0]).toBe(call);
    expect(call.record.excludedBy).toBeUndefined();
  });
});

it("a watch of kopf is marked, since it takes what it lists otherwise than what it is told", async () => {
  const { handler } = setup({ userAgent: "mesh" });
  const marks = async (target: string, agent: string) => {
    const call = callOf("GET", target, from(agent));
    await handler(call);
    return call.record.tellsListsApart;
  };
  expect(await marks("/api/v1/pods?watch=1", "kopf/1.45.2")).toBe(true);
  expect(await marks("/api/v1/pods?watch=1", "foo-operator kopf/1.45.2")).toBe(true);
  expect(await marks("/api/v1/pods?watch=1", "operator/v1 (linux/amd64) kubernetes/abc")).toBeUndefined();
  expect(await marks("/api/v1/pods", "kopf/1.45.2")).toBeUndefined();
});

describe("a caller that is served in the default subset only", () => {
  it("is marked with the entry that says so, by what it sent and not by what the API server is told", async () => {
    const { handler } = setup({ userAgent: "other", defaultOnlyUserAgents: ["foo/*"] });
    const mark = async (agent: string) => {
      const call = callOf("GET", "/version", from(agent));
      await handler(call);
      return call.record.excludedBy;
    };
    expect(await mark("foo/1")).toBe("foo/*");
    expect(await mark("other")).toBeUndefined();
  });

  it("loses its followed logs and tunnels as soon as the list has it; others keep theirs", async () => {
    const { send, enforce, body } = setup({});
    const sink = recordingSink();
    const reply = await send(LOGS, from("foo/1"));
    (reply.body as ByteSource).open(sink);
    const leaving = new AbortController();
    const tunnel = (agent: string) => send(EXEC, { ...from(agent), upgrade: "websocket", signal: leaving.signal });
    const [mine, others] = [await tunnel("foo/1"), await tunnel("bar/1")];
    await Promise.resolve();
    body.write("line");
    enforce({ defaultOnlyUserAgents: ["foo/*"] });
    expect(body.cancelled).toBe(true);
    expect([mine.tunnel?.signal.aborted, others.tunnel?.signal.aborted]).toEqual([true, false]);
    leaving.abort();
  });
});
