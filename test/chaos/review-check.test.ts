// Tests review-check.ts together with the ownership check.
import { describe, expect, it } from "vitest";
import { checkOwnership } from "./ownership-check.ts";
import { checkedReviews } from "./review-check.ts";

const WAITS_MS = 2_000;
const subsetOf = (pod: string) => (pod.startsWith("canary") ? "v2" : "");
const answer = (pod: string, atMs: number) => ({
  pod,
  uid: `${pod}-${atMs}`,
  namespace: "a",
  name: "x",
  receivedMs: atMs,
  answeredMs: atMs,
});

function violations(...answers: ReturnType<typeof answer>[]) {
  const changes = [
    { sinceMs: 0, subset: "" },
    { sinceMs: 10_000, subset: "v2" },
  ];
  const writes = checkedReviews(answers, subsetOf, WAITS_MS);
  return checkOwnership({ writes, subsetOf, ownersOf: () => changes }).violations.length;
}

describe("the check of answered reviews", () => {
  it("accepts a move, and answers of the old owner that were on their way", () => {
    expect(violations(answer("foo-0", 9_000), answer("foo-1", 10_500), answer("canary-0", 11_000))).toBe(0);
    expect(
      violations(answer("canary-0", 11_000), answer("foo-0", 12_500), answer("canary-1", 13_000), answer("foo-1", 9_000)),
    ).toBe(0);
  });
  it("finds an answer of the old owner long after the new owner's first", () => {
    expect(violations(answer("foo-0", 9_000), answer("canary-0", 11_000), answer("foo-0", 13_500))).toBe(1);
  });
  it("finds an answer of the new owner before the rules change", () => {
    expect(violations(answer("foo-0", 5_000), answer("canary-0", 9_000))).toBe(1);
  });
});
