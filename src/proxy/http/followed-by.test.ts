import { expect, it } from "vitest";
import { recordingSink, scriptedSource } from "../../../test/support/scripted-body.ts";
import { followedBy } from "./body-sources.ts";
import type { ByteSource } from "./byte-stream.ts";

const GONE = new Error("gone");

function setup() {
  const [first, second, sink] = [scriptedSource(), scriptedSource(), recordingSink()];
  let answer: ((body: ByteSource) => void) | undefined;
  let refuse: ((error: Error) => void) | undefined;
  const next = () =>
    new Promise<ByteSource>((resolve, reject) => {
      [answer, refuse] = [resolve, reject];
    });
  const body = followedBy(first, next);
  const settle = () => new Promise((resolve) => setImmediate(resolve));
  return {
    first,
    second,
    sink,
    body,
    settle,
    isAsked: () => answer !== undefined,
    answer: () => answer?.(second),
    refuse: () => refuse?.(new Error("refused")),
  };
}

it("sends the one body and then the other, which is not asked for before", async () => {
  const { first, second, sink, body, settle, isAsked, answer } = setup();
  const control = body.open(sink);
  first.write("a");
  expect(isAsked()).toBe(false);
  first.end();
  answer();
  await settle();
  second.write("b");
  control.resume();
  expect([first.resumed, second.resumed, sink.text, sink.state]).toEqual([0, 1, "ab", "open"]);
  second.end();
  expect(sink.state).toBe("ended");
});

it("breaks with the first body, without asking for the second", () => {
  const { first, sink, body, isAsked } = setup();
  body.open(sink);
  first.abort();
  expect([sink.state, isAsked()]).toEqual(["aborted", false]);
});

it("breaks if there is no second body", async () => {
  const { first, sink, body, settle, refuse } = setup();
  body.open(sink);
  first.end();
  refuse();
  await settle();
  expect(sink.state).toBe("aborted");
});

it("passes a cancel to the body that is open, or to the second one as soon as it is there", async () => {
  const unopened = setup();
  unopened.body.cancel(GONE);
  expect(unopened.first.cancelled).toBe(true);

  const early = setup();
  early.body.open(early.sink).cancel(GONE);
  expect(early.first.cancelled).toBe(true);

  const between = setup();
  const control = between.body.open(between.sink);
  between.first.end();
  control.cancel(GONE);
  between.answer();
  await between.settle();
  expect([between.second.opened, between.second.cancelled, between.sink.state]).toEqual([false, true, "open"]);

  const late = setup();
  const lateControl = late.body.open(late.sink);
  late.first.end();
  late.answer();
  await late.settle();
  lateControl.cancel(GONE);
  expect(late.second.cancelled).toBe(true);
});
