import { describe, expect, it } from "vitest";
import { claimsOf } from "../../../test/support/updates.ts";
import type { ProxyMessage, RegistrationMessage, ReportMessage } from "../contract/messages.ts";
import {
  MAX_WAIT_MS,
  type ProxyVerdict,
  type StreamEvent,
  type StreamFacts,
  type StreamState,
  type StreamStatus,
  stepStream,
} from "./manager-stream.ts";

const registration: RegistrationMessage = {
  pod: { namespace: "ops", name: "d0", uid: "1" },
  proxyVersion: "",
  capabilities: [],
  streamNumber: 1,
  epoch: 0,
  route: claimsOf(),
};
const table = Buffer.from("table");
const leads: ReportMessage = { leader: true };
const of = (message: ProxyMessage): StreamEvent => ({ kind: "message", message });
const [REGISTRATION, LEADS] = [of({ registration }), of({ report: leads })];
const ACK = of({ ack: { type: "routes", nonce: 1, version: 1 } });
const promise = (epoch = 3) => of({ promise: { epoch, tables: [table] } });

const DUE: StreamState = { kind: "registration-due" };
const WAITS: StreamState = { kind: "waits", registration, sinceMs: 0, reports: [leads] };
const WELCOMED: StreamState = { kind: "promise-due", registration, epoch: 3, reports: [leads] };
const SERVED: StreamState = { kind: "served", epoch: 3 };
const OVER: StreamState = { kind: "over" };

const WAIT: ProxyVerdict = { kind: "wait", message: "not listed" };
const REFUSE: ProxyVerdict = { kind: "refuse", message: "no such pod" };
const factsWith = (more: Partial<StreamFacts>): StreamFacts => ({
  nowMs: () => 0,
  epoch: () => 3,
  judge: () => ({ kind: "serve" }),
  refusal: () => undefined,
  wantedTables: () => [],
  ...more,
});
const stepped = (state: StreamState, event: StreamEvent, more: Partial<StreamFacts> = {}) => {
  const { state: next, effects } = stepStream(state, event, factsWith(more));
  return [next, ...effects];
};
const fails = (status: StreamStatus, details: string) => [OVER, { kind: "fail", status, details }];

describe("a stream without a registration", () => {
  it("is welcomed by its registration, and asked for tables", () => {
    const welcome = { epoch: 3, wantedTables: [table], types: ["routes", "policy", "peers"] };
    expect(stepped(DUE, REGISTRATION, { wantedTables: () => [table] })).toEqual([
      { ...WELCOMED, reports: [] },
      { kind: "welcome", message: { welcome } },
    ]);
  });
  it("ends by any other message, and by a registration over a bound", () => {
    const text = "the first message must be a registration that names the pod";
    for (const event of [LEADS, ACK, promise()]) expect(stepped(DUE, event)).toEqual(fails("INVALID_ARGUMENT", text));
    const refusal = () => ({ status: "RESOURCE_EXHAUSTED" as const, details: "too often" });
    expect(stepped(DUE, REGISTRATION, { refusal })).toEqual(fails("RESOURCE_EXHAUSTED", "too often"));
  });
  it("waits while the pods are not listed, or while another stream is asked for a table", () => {
    const waits = [{ ...WAITS, reports: [] }, { kind: "look-later" }];
    expect(stepped(DUE, REGISTRATION, { judge: () => WAIT })).toEqual(waits);
    expect(stepped(DUE, REGISTRATION, { wantedTables: () => undefined })).toEqual(waits);
  });
  it("ends with a redirect, a refusal, or the news of a newer leader", () => {
    const to = (endpoint: string) => stepped(DUE, REGISTRATION, { judge: () => ({ kind: "redirect", endpoint }) });
    expect(to("leader:1")).toEqual([OVER, { kind: "redirect", endpoint: "leader:1" }]);
    expect(to("")).toEqual(fails("UNAVAILABLE", "no replica leads yet"));
    expect(stepped(DUE, REGISTRATION, { judge: () => REFUSE })).toEqual(fails("PERMISSION_DENIED", "no such pod"));
    expect(stepped(DUE, REGISTRATION, { epoch: () => undefined })).toEqual(fails("UNAVAILABLE", "this replica leads no more"));
    const details = "the proxy follows a newer leader: epoch 4, not 3 (if no other replica leads, make the pod anew)";
    expect(stepped(DUE, of({ registration: { ...registration, epoch: 4 } }))).toEqual([
      OVER,
      { kind: "newer-epoch", message: details },
      { kind: "fail", status: "UNAVAILABLE", details },
    ]);
  });
});

describe("a stream that waits", () => {
  it("is welcomed at a later look, with the reports that it has sent", () => {
    expect(stepped(WAITS, { kind: "look" }).at(0)).toEqual(WELCOMED);
    expect(stepped(WAITS, { kind: "look" }, { judge: () => WAIT })).toEqual([WAITS, { kind: "look-later" }]);
  });
  it("waits for a bounded time: then it is turned away, or asked for its tables itself", () => {
    const late = { nowMs: () => MAX_WAIT_MS };
    expect(stepped(WAITS, { kind: "look" }, { ...late, judge: () => WAIT })).toEqual(fails("UNAVAILABLE", "not listed"));
    const wantedTables: StreamFacts["wantedTables"] = (_, mayWait) => (mayWait ? undefined : [table]);
    expect(stepped(WAITS, { kind: "look" }, { ...late, wantedTables }).at(0)).toEqual(WELCOMED);
  });
});

describe.each([WAITS, WELCOMED])("a stream in the state $kind", (state) => {
  it("keeps the last report of each kind", () => {
    const backlog = { backlog: { heldNamespaces: 1, drainingWrites: 0 } };
    const [one] = stepped(state, of({ report: { report: "leader", leader: false } }));
    expect(one).toMatchObject({ kind: state.kind, reports: [{ leader: false }] });
    expect(stepped(state, of({ report: backlog }))).toEqual([{ ...state, reports: [leads, backlog] }]);
  });
  it("ignores an answer, and is sent nothing", () => {
    expect(stepped(state, ACK)).toEqual([state]);
    expect(stepped(state, { kind: "send", message: { redirect: { endpoint: "" } } })).toEqual([state]);
  });
});

describe("a stream that was welcomed", () => {
  it("is served once it promises the epoch", () => {
    const serve = { kind: "serve", registration, epoch: 3, reports: [leads] };
    expect(stepped(WELCOMED, promise())).toEqual([SERVED, serve]);
  });
  it("ends if it promises another epoch, if the replica leads no more, or if the pod is admitted no more", () => {
    const leadsNoMore = fails("UNAVAILABLE", "this replica leads no more");
    expect(stepped(WELCOMED, promise(2))).toEqual(leadsNoMore);
    expect(stepped(WELCOMED, promise(), { epoch: () => 4 })).toEqual(leadsNoMore);
    expect(stepped(WELCOMED, promise(), { judge: () => REFUSE })).toEqual(fails("PERMISSION_DENIED", "no such pod"));
  });
});

describe("a served stream", () => {
  const message = { redirect: { endpoint: "" } };
  it("delivers what the proxy says, and writes what the registry sends", () => {
    expect(stepped(SERVED, LEADS)).toEqual([SERVED, { kind: "deliver", message: { report: leads } }]);
    expect(stepped(SERVED, { kind: "send", message })).toEqual([SERVED, { kind: "write", message }]);
    expect(stepped(SERVED, { kind: "look" })).toEqual([SERVED]);
  });
  it("sends nothing once this replica leads no more", () => {
    expect(stepped(SERVED, { kind: "send", message }, { epoch: () => undefined })).toEqual([
      OVER,
      { kind: "unregister" },
      { kind: "fail", status: "UNAVAILABLE", details: "this replica leads no more" },
    ]);
  });
});

it("a second registration ends the stream at any time", () => {
  for (const state of [WAITS, WELCOMED, SERVED]) {
    const fail = { kind: "fail", status: "UNAVAILABLE", details: "a stream has one registration" };
    expect(stepped(state, REGISTRATION)).toEqual([OVER, ...(state === SERVED ? [{ kind: "unregister" }] : []), fail]);
  }
});

it("a stream that ends or closes is over; only a served one is unregistered, and nothing follows", () => {
  for (const state of [DUE, WAITS, WELCOMED, SERVED]) {
    const unregister = state === SERVED ? [{ kind: "unregister" }] : [];
    expect(stepped(state, { kind: "closed" })).toEqual([OVER, ...unregister]);
    const fail = { kind: "fail", status: "UNAVAILABLE", details: "bye" };
    expect(stepped(state, { kind: "end", status: "UNAVAILABLE", reason: "bye" })).toEqual([OVER, ...unregister, fail]);
  }
  for (const event of [REGISTRATION, LEADS, promise(), { kind: "look" }, { kind: "closed" }] as const)
    expect(stepped(OVER, event)).toEqual([OVER]);
});
