import { expect, it } from "vitest";
import { createQuestions, MAX_ASKED } from "./ask-main.ts";
import type { ReviewDecision, ReviewQuestion } from "./decide-review.ts";

const question = (name: string, labels = {}) => ({ subject: { name, namespace: "", uid: "", labels } }) as ReviewQuestion;
const named = (asked: readonly ReviewQuestion[]) => asked.map(({ subject }) => subject.name);
const decision = (message: string): ReviewDecision => ({ kind: "limited", rule: "", message });

function world() {
  const messages: string[][] = [];
  const questions = createQuestions((asked) => messages.push([...named(asked)]));
  return {
    messages,
    decide: (name: string, signal: AbortSignal = new AbortController().signal, labels = {}) =>
      questions.decide(question(name, labels), signal),
    answer: (...names: string[]) => questions.answered(names.map(decision)),
  };
}

it("asks at once, and each question gets its own answer", async () => {
  const { messages, decide, answer } = world();
  const first = decide("a");
  const others = [decide("b"), decide("c")];
  expect(messages).toEqual([["a"]]);
  answer("a");
  expect(await first).toEqual(decision("a"));
  expect(messages).toEqual([["a"], ["b", "c"]]);
  answer("b", "c");
  expect(await Promise.all(others)).toEqual([decision("b"), decision("c")]);
});

it("a flood of reviews: one message with a few questions is under way, and all are answered in their order", async () => {
  const { messages, decide, answer } = world();
  const names = Array.from({ length: 200 }, (_, at) => `review-${at}`);
  const all = names.map((name) => decide(name));
  for (let sent = 1; messages.length === sent; sent++) {
    const last = messages.at(-1) ?? [];
    expect(last.length).toBeLessThanOrEqual(MAX_ASKED);
    answer(...last);
  }
  expect(await Promise.all(all)).toEqual(names.map(decision));
  expect(messages.flat()).toEqual(names);
});

it("callers that are gone are not asked about, and leave nothing behind", async () => {
  const { messages, decide, answer } = world();
  const gone = new AbortController();
  const first = decide("a", gone.signal);
  const second = decide("b", gone.signal);
  const third = decide("c");
  gone.abort();
  await expect(first).rejects.toMatchObject({ code: "ABORTED" });
  await expect(second).rejects.toMatchObject({ code: "ABORTED" });
  await expect(decide("d", gone.signal)).rejects.toMatchObject({ code: "ABORTED" });
  answer("a");
  answer("c");
  expect(await third).toEqual(decision("c"));
  expect(messages).toEqual([["a"], ["c"]]);
});

it("large subjects share a message only up to its bound, and all are answered", async () => {
  const { messages, decide, answer } = world();
  const signal = new AbortController().signal;
  const all = Array.from({ length: 20 }, (_, at) => decide(`large-${at}`, signal, { key: "x".repeat(20_000) }));
  for (let sent = 1; messages.length === sent; sent++) {
    const last = messages.at(-1) ?? [];
    expect(last.length).toBeLessThanOrEqual(3);
    answer(...last);
  }
  expect(await Promise.all(all)).toHaveLength(20);
});

it("a subject that alone has more than a message may have is asked about all the same", async () => {
  const { messages, decide, answer } = world();
  const huge = decide("huge", new AbortController().signal, { key: "x".repeat(100_000) });
  answer("huge");
  expect(await huge).toEqual(decision("huge"));
  expect(messages).toEqual([["huge"]]);
});
