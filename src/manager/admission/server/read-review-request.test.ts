import { describe, expect, it } from "vitest";
import { systemClock } from "../../../base/clock.ts";
import { createFairBudget, type FairBudget } from "../../../base/fair-budget.ts";
import { createFairTurns } from "../../../base/fair-turns.ts";
import { MAX_REVIEW_BYTES } from "../../../kube/admission-review.ts";
import { readReviewRequest } from "./read-review-request.ts";

const MIB = 1024 * 1024;
const reviewWith = (object: string) =>
  Buffer.from(
    `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"CREATE","resource":{"group":"","version":"v1","resource":"pods"},"object":${object}}}`,
  );
function read(body: Buffer, { budget = createFairBudget(96 * MIB), chunk = 16 * 1024, declares = true } = {}) {
  async function* chunks() {
    for (let at = 0; at < body.length; at += chunk) yield body.subarray(at, at + chunk);
  }
  const headers = declares ? { "content-length": String(body.length) } : {};
  return readReviewRequest({ headers, [Symbol.asyncIterator]: chunks }, "10.0.0.1", {
    budget,
    turns: createFairTurns({ clock: systemClock }),
  });
}
const refused = (code: number, message: string) => ({ status: { code, message: expect.stringContaining(message) } });
/** What one client can still take. */
function leftIn(budget: FairBudget): number {
  let left = 0;
  while (budget.take("left", 1_024)) left++;
  for (let at = 0; at < left; at++) budget.give("left", 1_024);
  return left * 1_024;
}

describe("a review that is refused before it is parsed", () => {
  it.each([
    ["a bomb of nested lists", "[".repeat(3 * MIB) + "]".repeat(3 * MIB), "more than 100 levels"],
    ["a bomb of nested objects", `${'{"a":'.repeat(MIB)}1${"}".repeat(MIB)}`, "more than 100 levels"],
    ["millions of empty lists", `[${"[],".repeat(2 * MIB)}[]]`, "more than 200000 values"],
    ["millions of numbers", `[${"1,".repeat(3 * MIB)}1]`, "more than 200000 values"],
    ["a flood of names", `{${Array.from({ length: 30_000 }, (_, at) => `"${at}k":0`).join()}}`, "more than 20000 names"],
  ])("%s", async (_, object, message) => {
    for (const declares of [true, false])
      await expect(read(reviewWith(object), { declares })).rejects.toMatchObject(refused(413, message));
  });

  it("a body that is longer than it may be", async () => {
    const body = Buffer.alloc(MAX_REVIEW_BYTES + 1, " ");
    for (const declares of [true, false])
      await expect(read(body, { declares })).rejects.toMatchObject(refused(413, "7340032 bytes"));
  });
});

describe("the budget", () => {
  it("has room for the largest review that one client may send, of any kind", async () => {
    const texts = (bytes: number) =>
      Array.from(
        { length: Math.ceil(bytes / 500_000) },
        (_, at) => `"${"x".repeat(Math.min(500_000, bytes - at * 500_000))}"`,
      ).join();
    const long = `{"data":[${texts(MAX_REVIEW_BYTES - 500)}]}`;
    const names = Array.from({ length: 100_000 }, (_, at) => `"team-${at}"`).join();
    const members = Array.from({ length: 19_000 }, (_, at) => `"name-of-a-field-${at}":{}`).join();
    const dense = `"a":{${Array.from({ length: 19_000 }, (_, at) => `"${at}":{}`).join()}},"b":[${"[],".repeat(50_000)}[]]`;
    const worst = `{${dense},"c":[${texts(MAX_REVIEW_BYTES - dense.length - 500)}]}`;
    for (const object of [long, worst, `{"data":[${names}]}`, `{"data":{${members}}}`, `{"a":{${members}},"b":[${names}]}`])
      await expect(read(reviewWith(object))).resolves.toMatchObject({ request: { uid: "u" } });
  });

  it("has no room for one text of megabytes, which takes seconds to split or to match", async () => {
    await expect(read(reviewWith(`"${"x".repeat(600_000)}"`))).rejects.toMatchObject(
      refused(413, "a string of more than 524288 bytes"),
    );
  });

  it("is charged by what a body becomes before it is parsed: no room is 429", async () => {
    const budget = createFairBudget(2 * MIB);
    const body = reviewWith(`[${"[],".repeat(20_000)}[]]`);
    expect(body.length).toBeLessThan(MIB / 10);
    await expect(read(body, { budget })).rejects.toMatchObject(refused(429, "too many reviews"));
    expect(leftIn(budget)).toBe(MIB);
  });

  it("is not needed for an ordinary review, whoever holds all of it", async () => {
    const budget = createFairBudget(1_000);
    for (let client = 0; client < 50; client++) while (budget.take(`stranger-${client}`, 1));
    const containers = Array.from({ length: 10 }, (_, at) => ({ name: `c${at}`, env: [{ name: "A", value: "x".repeat(300) }] }));
    const { request, release } = await read(reviewWith(JSON.stringify({ spec: { containers } })), { budget });
    expect(request.uid).toBe("u");
    release();
    await expect(read(reviewWith(`"${"x".repeat(200_000)}"`), { budget })).rejects.toMatchObject(refused(429, "too many"));
  });

  it("gets the bytes back when they are parsed, and the rest at the end, whatever the end is", async () => {
    const budget = createFairBudget(8 * MIB);
    const all = leftIn(budget);
    const { release } = await read(reviewWith(`"${"x".repeat(100_000)}"`.replace(/^/, '{"a":').concat("}")), { budget });
    expect(all - leftIn(budget)).toBeLessThan(500_000);
    expect(leftIn(budget)).toBeLessThan(all);
    release();
    for (const body of ["{", "", "[]", "[".repeat(200)]) await expect(read(Buffer.from(body), { budget })).rejects.toThrow();
    expect(leftIn(budget)).toBe(all);
  });

  it("counts what a body of single bytes takes, which is not a buffer for each", async () => {
    const { request, release } = await read(reviewWith(`{"a":"${"x".repeat(20_000)}"}`), { chunk: 1, declares: false });
    expect(request.uid).toBe("u");
    release();
  });
});
