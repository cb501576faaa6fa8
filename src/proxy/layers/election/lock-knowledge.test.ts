import { describe, expect, it } from "vitest";
import { isDue, type Knowledge, type LockEvent, NOTHING_KNOWN, step, verdict } from "./lock-knowledge.ts";

const all = (events: readonly LockEvent[], from: Knowledge = NOTHING_KNOWN) => events.reduce(step, from);
const answered = (verb: "get" | "create" | "update" | "delete", status: number): LockEvent => ({
  kind: "answered",
  verb,
  status,
});
const used: LockEvent = { kind: "used", verb: "get" };
const asked: LockEvent = { kind: "asked", nowMs: 0 };
const reviewed = (...denied: ("get" | "create" | "update" | "delete")[]): LockEvent => ({
  kind: "reviewed",
  denied: new Set(denied),
  reason: "no rule",
});

describe("the verdict", () => {
  it.each<[string, LockEvent[], string[] | undefined]>([
    ["is none before the lock was answered", [used, asked, reviewed("get")], undefined],
    ["is none while the first reviews are under way", [used, asked, answered("get", 403)], undefined],
    ["is what the reviews deny", [used, asked, reviewed("get", "update"), answered("get", 403)], ["get", "update"]],
    ["is that all is allowed", [used, asked, reviewed(), answered("get", 404)], []],
    ["needs no create of a lock that is there", [used, asked, reviewed("create"), answered("get", 200)], []],
    ["nor of one that conflicts", [used, asked, reviewed("create"), answered("update", 409)], []],
    ["needs it of one that is not there", [used, asked, reviewed("create"), answered("get", 404)], ["create"]],
    ["and of one that was deleted", [used, asked, reviewed("create"), answered("get", 200), answered("delete", 200)], ["create"]],
    ["believes what passes more than the review", [used, asked, reviewed("get", "update"), answered("get", 200)], ["update"]],
    ["not for an answer that nobody has authorized", [used, asked, reviewed("get"), answered("get", 429)], ["get"]],
    ["does not go by a refusal that the reviews deny", [used, asked, reviewed(), answered("get", 403)], []],
    ["goes by it where there are no reviews", [used, asked, { kind: "unanswered" }, answered("get", 403)], ["get"]],
    ["until it passes", [used, asked, { kind: "unanswered" }, answered("get", 403), answered("get", 200)], undefined],
  ])("%s", (_, events, expected) => {
    expect(verdict(all(events))?.deniedVerbs).toEqual(expected);
  });

  it("has the reason only with something that is denied", () => {
    expect(verdict(all([used, asked, reviewed("get"), answered("get", 403)]))?.reason).toBe("no rule");
    expect(verdict(all([used, asked, reviewed("get"), answered("get", 200)]))?.reason).toBe("");
  });
});

describe("it is time to ask", () => {
  it.each<[string, LockEvent[], number | undefined]>([
    ["at the first use", [used], 0],
    ["never while all is allowed", [used, asked, reviewed(), answered("get", 200)], undefined],
    ["never while it is asked", [used, asked], undefined],
    ["a minute after a denial", [used, asked, reviewed("get"), answered("get", 403)], 60_000],
    ["a minute after no answer", [used, asked, { kind: "unanswered" }], 60_000],
    ["soon after what was denied has passed", [used, asked, reviewed("get"), answered("get", 200)], 2_000],
    ["soon after what was allowed is refused", [used, asked, reviewed(), answered("get", 403)], 2_000],
    ["soon after another verb that an elector needs", [used, asked, reviewed(), { kind: "used", verb: "patch" }], 2_000],
    ["not after one that it needs not", [used, asked, reviewed(), { kind: "used", verb: "deletecollection" }], undefined],
  ])("%s", (_, events, dueMs) => {
    const known = all(events);
    const due = [0, 1_999, 2_000, 59_999, 60_000, 3_600_000].find((nowMs) => isDue(known, nowMs));
    expect(due).toBe(dueMs);
  });
});
