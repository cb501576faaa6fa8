import type { Dispatcher } from "undici";
import { describe, expect, it } from "vitest";
import { createFakeClock } from "../../../test/support/fake-clock.ts";
import { recordingSink } from "../../../test/support/scripted-body.ts";
import { MeshError } from "../../base/errors.ts";
import type { Reply } from "../http/handler.ts";
import { exchange } from "./exchange.ts";

// A connection by hand: what the exchange asks of undici, and undici's side of the conversation.
function setup(method: string) {
  const clock = createFakeClock();
  const client = new AbortController();
  const aborted: Error[] = [];
  const flow: string[] = [];
  const controller = {
    abort: (error: Error) => aborted.push(error),
    pause: () => flow.push("pause"),
    resume: () => flow.push("resume"),
  } as unknown as Dispatcher.DispatchController;
  let handler: Dispatcher.DispatchHandler = {};
  const pool = {
    dispatch(_options: unknown, given: Dispatcher.DispatchHandler) {
      handler = given;
      return true;
    },
  } as unknown as Dispatcher;
  const states: (Reply | MeshError)[] = [];
  let left = 0;
  const onOver = () => void left++;
  void exchange(pool, { method, path: "/" }, { signal: client.signal, clock, abandonedMs: 60_000, onOver }).then(
    (reply) => states.push(reply),
    (error: MeshError) => states.push(error),
  );
  return {
    clock,
    aborted,
    start: () => handler.onRequestStart?.(controller, null),
    head: () => handler.onResponseStart?.(controller, 201, {}, "Created"),
    data: (text: string) => handler.onResponseData?.(controller, Buffer.from(text)),
    end: () => handler.onResponseEnd?.(controller, {}),
    flow,
    breaks: (code: string) => handler.onResponseError?.(controller, Object.assign(new Error(`read ${code}`), { code })),
    bodyBreaks: () => handler.onResponseError?.(controller, new MeshError("REQUEST_BODY_BROKEN", "reading: broken off")),
    left: () => left,
    goes: () => client.abort(new MeshError("ABORTED", "gone")),
    async outcome() {
      await clock.flush();
      const [first] = states;
      return first instanceof MeshError ? first.code : first?.status;
    },
    reply: () => states[0] as Reply,
    /** Opens the body of the answer, whose head has come. */
    async open(wants = () => true) {
      await clock.flush();
      const { body } = states[0] as Reply;
      if (body === null || body instanceof Uint8Array) throw new Error("no source");
      const written: string[] = [];
      const control = body.open({
        write(chunk) {
          written.push(Buffer.from(chunk).toString());
          return wants();
        },
        end: () => written.push("end"),
        abort: () => written.push("aborted"),
      });
      await clock.flush();
      return { written, control };
    },
  };
}

const turnEnds = () => new Promise((resolve) => setImmediate(resolve));

describe("a write whose client goes away", () => {
  it.each(["POST", "PUT", "PATCH", "DELETE"])("once it was sent is in flight until its answer begins (%s)", async (method) => {
    const { start, goes, outcome, clock, head, data, aborted } = setup(method);
    start();
    goes();
    await clock.advance(59_000);
    expect([await outcome(), aborted.length]).toEqual([undefined, 0]);
    head();
    data("an unread answer");
    expect([await outcome(), aborted.length, clock.pending]).toEqual(["ABORTED", 1, 0]);
  });

  it("gives its turn up at once, and only once", async () => {
    const { start, goes, left, clock, head } = setup("PATCH");
    start();
    expect(left()).toBe(0);
    goes();
    expect(left()).toBe(1);
    head();
    await clock.flush();
    expect(left()).toBe(1);
  });

  it("is given up after a minute", async () => {
    const { start, goes, outcome, clock, aborted } = setup("PATCH");
    start();
    goes();
    await clock.advance(60_000);
    expect([await outcome(), aborted.length, clock.pending]).toEqual(["ABORTED", 1, 0]);
  });

  it("is over when its connection breaks", async () => {
    const { start, goes, outcome, clock, breaks } = setup("PATCH");
    start();
    goes();
    breaks("ECONNRESET");
    expect([await outcome(), clock.pending]).toEqual(["ABORTED", 0]);
  });

  it("is over at once if its body was not sent whole: the API server cannot process that", async () => {
    const { start, goes, outcome, clock, bodyBreaks } = setup("POST");
    start();
    goes();
    bodyBreaks();
    expect([await outcome(), clock.pending]).toEqual(["ABORTED", 0]);
  });

  it("before it was sent is never sent", async () => {
    const { start, goes, outcome, aborted } = setup("POST");
    goes();
    expect(await outcome()).toBe("ABORTED");
    start();
    expect(aborted).toHaveLength(1);
  });

  it("while the answer comes ends at once", async () => {
    const { start, goes, outcome, aborted, head, reply, clock } = setup("POST");
    start();
    head();
    expect(await outcome()).toBe(201);
    const { body } = reply();
    if (body === null || body instanceof Uint8Array) throw new Error("no source");
    const sink = recordingSink();
    body.open(sink);
    await clock.flush();
    goes();
    expect([sink.state, aborted.length, clock.pending]).toEqual(["aborted", 1, 0]);
  });
});

it.each(["GET", "HEAD", "OPTIONS"])("a read whose client goes away ends at once (%s)", async (method) => {
  const { start, goes, outcome, aborted } = setup(method);
  start();
  goes();
  expect([await outcome(), aborted.length]).toEqual(["ABORTED", 1]);
});

describe("a connection that fails", () => {
  const CODES = [
    "ETIMEDOUT",
    "EHOSTUNREACH",
    "ENETUNREACH",
    "ECONNRESET",
    "EPIPE",
    "UND_ERR_SOCKET",
    "UND_ERR_DESTROYED",
    "SOME_NEW",
  ];

  it.each(CODES)("under a request that was handed to it may have carried it through (%s)", async (code) => {
    const { start, breaks, outcome } = setup("POST");
    start();
    breaks(code);
    expect(await outcome()).toBe("UPSTREAM_BROKEN");
  });

  it.each([...CODES, "ECONNREFUSED", "UND_ERR_CONNECT_TIMEOUT"])("before that has carried nothing (%s)", async (code) => {
    const { breaks, outcome } = setup("POST");
    breaks(code);
    expect(await outcome()).toBe("UPSTREAM_UNREACHABLE");
  });

  it.each([
    ["UND_ERR_HEADERS_TIMEOUT", "UPSTREAM_TIMEOUT"],
    ["HPE_INVALID_CONSTANT", "UPSTREAM_BROKEN"],
    ["UND_ERR_REQ_CONTENT_LENGTH_MISMATCH", "BAD_REQUEST"],
  ])("or answers badly is told apart (%s: %s)", async (code, expected) => {
    const { start, breaks, outcome } = setup("POST");
    start();
    breaks(code);
    expect(await outcome()).toBe(expected);
  });
});

describe("a body", () => {
  it("is written once for each turn of the event loop, and at its end", async () => {
    const { start, head, data, end, open } = setup("GET");
    start();
    head();
    data("a");
    data("b");
    const { written } = await open();
    expect(written).toEqual(["ab"]);
    data("c");
    data("d");
    await Promise.resolve();
    expect(written).toEqual(["ab"]);
    await turnEnds();
    expect(written).toEqual(["ab", "cd"]);
    data("e");
    end();
    expect(written).toEqual(["ab", "cd", "e", "end"]);
    await turnEnds();
    expect(written).toHaveLength(4);
  });

  it("of more than 64 KiB in one turn is written before the turn ends", async () => {
    const { start, head, data, open } = setup("GET");
    start();
    head();
    const { written } = await open();
    for (let at = 0; at < 130; at++) data("x".repeat(1_024));
    expect(written.map(({ length }) => length)).toEqual([65_536, 65_536]);
  });

  it("that breaks off is written as far as it came", async () => {
    const { start, head, data, breaks, open } = setup("GET");
    start();
    head();
    const { written } = await open();
    data("a");
    breaks("ECONNRESET");
    expect(written).toEqual(["a", "aborted"]);
  });

  it("pauses the connection while its reader is full", async () => {
    const { start, head, data, flow, open } = setup("GET");
    start();
    head();
    const { control } = await open(() => false);
    data("a");
    await turnEnds();
    expect(flow).toEqual(["resume", "pause"]);
    control.resume();
    await Promise.resolve();
    expect(flow).toEqual(["resume", "pause", "resume"]);
  });

  it.each(["the client goes", "it is cancelled"])("is not written any more once %s", async (how) => {
    const { start, head, data, goes, open } = setup("GET");
    start();
    head();
    const { written, control } = await open();
    data("a");
    if (how === "it is cancelled") control.cancel(new Error("enough"));
    else goes();
    await turnEnds();
    expect(written).toEqual(how === "it is cancelled" ? [] : ["aborted"]);
  });
});
