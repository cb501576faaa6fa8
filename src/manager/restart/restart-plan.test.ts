import { describe, expect, it } from "vitest";
import { appPod } from "../../../test/support/pod-facts.ts";
import { VIRTUAL_APP_WORDS } from "../../../test/support/source-words.ts";
import type { Refusal } from "./evictor.ts";
import { planRestart, type RestartFacts, type RestartStep } from "./restart-plan.ts";
import type { RestartPod } from "./restart-pods.ts";
import type { RestartRecord } from "./restart-record.ts";

const NOW = "2026-01-01T00:00:00Z";
const LATER = "2026-01-01T00:01:00Z";

/** A ready pod that retains namespaces that its subset has lost. */
const loser = (name: string, more: Partial<RestartPod> = {}): RestartPod => ({
  ...appPod(name, "", { namespace: "ops" }),
  connected: true,
  leader: false,
  retains: true,
  ...more,
});
/** A ready pod that needs no restart. */
const other = (name: string, more: Partial<RestartPod> = {}) => loser(name, { retains: false, ...more });
const leader = (name: string, more: Partial<RestartPod> = {}) => loser(name, { leader: true, ...more });

const plan = (pods: readonly RestartPod[], more: Partial<RestartFacts> = {}): RestartStep =>
  planRestart({
    pods,
    subsets: ["", "canary"],
    previous: undefined,
    isPaused: false,
    words: VIRTUAL_APP_WORDS,
    isDissolving: false,
    hasLock: true,
    refusalOf: () => undefined,
    settleMs: 0,
    recentRestarts: () => 0,
    nowMs: Date.parse(NOW),
    ...more,
  });

const record = (pod: string, more: Partial<RestartRecord> = {}): RestartRecord => ({
  subset: "",
  pod,
  uid: `uid-${pod}`,
  since: NOW,
  expected: 3,
  left: 1,
  reason: "Evicting",
  message: "m",
  ...more,
});

/** The step in one line: the action, the pod, the reason, and the number of remaining pods. */
const line = (step: RestartStep) =>
  step.kind === "none" ? "none" : `${step.kind} ${step.record.pod} ${step.record.reason} ${step.record.left}`;

describe("the next pod of planRestart", () => {
  it("is none if no pod retains anything: pods that gain namespaces never restart", () => {
    expect(plan([other("a"), other("b", { leader: true })])).toEqual({ kind: "none" });
  });
  it("is a pod that does not lead, with the number of ready pods in the record", () => {
    expect(plan([leader("a"), loser("b"), loser("c")])).toEqual({
      kind: "evict",
      record: {
        subset: "",
        pod: "b",
        uid: "uid-b",
        since: NOW,
        expected: 3,
        left: 3,
        reason: "Evicting",
        message: "pod b is being evicted: it retains namespaces that the default subset has lost",
      },
    });
  });
  it("is the leader last", () => {
    expect(line(plan([leader("a"), other("b"), other("c")]))).toBe("evict a Evicting 1");
  });
  it("is chosen from one subset after the other, in the order of the spec, but first from a subset whose roll has begun", () => {
    const pods = [
      loser("c", { subset: "canary" }),
      leader("d", { subset: "canary" }),
      loser("a"),
      leader("b"),
      loser("x", { subset: "removed" }),
      leader("y", { subset: "removed" }),
    ];
    expect(line(plan(pods))).toBe("evict x Evicting 6");
    expect(line(plan(pods.slice(0, 4)))).toBe("evict a Evicting 4");
    const previous = record("gone", { subset: "canary", expected: 2 });
    expect(line(plan(pods.slice(0, 4), { previous }))).toBe("evict c Evicting 4");
  });
  it("is never a pod without a controller, with another app's proxy, or that has ended or is ending", () => {
    const pods = [loser("a", { controlled: false }), loser("b", { proxy: "other-app" }), loser("c", { ended: true })];
    expect(line(plan(pods))).toBe("none");
    expect(line(plan([loser("d", { terminating: true })]))).toBe("none");
  });
  it("is an unready pod before ready pods", () => {
    expect(line(plan([leader("a"), loser("b"), loser("c", { ready: false })]))).toBe("evict c Evicting 3");
  });
  it("is none for an app that is being deleted", () => {
    expect(plan([loser("a")], { isDissolving: true, previous: record("a") })).toEqual({ kind: "none" });
  });
});

describe("planRestart", () => {
  const three = [leader("a"), loser("b"), loser("c")];

  it("waits while the app is paused", () => {
    expect(line(plan(three, { isPaused: true }))).toBe("wait b Paused 3");
  });
  it("waits while a pod of the app, in any subset, is not ready for another reason", () => {
    const step = plan([...three, other("d", { subset: "canary", ready: false })]);
    expect(line(step)).toBe("wait b NotReady 3");
    expect(step).toMatchObject({ record: { message: "pod b waits for its restart: pod d is not ready" } });
    expect(line(plan([...three, other("d", { ready: false, ended: true })]))).toBe("evict b Evicting 3");
  });
  it("waits while somebody else replaces a pod of the app", () => {
    expect(line(plan([...three, other("d", { terminating: true })]))).toBe("wait b NotReady 3");
  });
  it.each(["", "canary"])(
    "waits five minutes for a pod of subset %j that does not start, and then names it and goes on",
    (subset) => {
      const createdMs = Date.parse(NOW) - 200_000;
      const pending = { ready: false, running: false, connected: false, neverRanSinceMs: createdMs };
      const pods = [...three, other("d", { subset, ...pending })];
      const young = plan(pods);
      expect(young).toMatchObject({ kind: "wait", record: { reason: "NotReady", pod: "b" }, recheckMs: 100_000 });
      expect(young).toMatchObject({ record: { message: "pod b waits for its restart: pod d has not started yet" } });
      const old = plan(pods, { nowMs: createdMs + 300_000 });
      expect(old).toMatchObject({
        kind: "evict",
        record: { message: expect.stringMatching(/has lost; nothing waits for pod d, which has not started for over 5 min$/) },
      });
      expect(line(plan([...pods, other("e", { ready: false })], { nowMs: createdMs + 300_000 }))).toBe("wait b NotReady 3");
    },
  );
  it("delays a ready pod while the leader is not ready, but not an unready pod", () => {
    const unready = leader("a", { ready: false });
    expect(line(plan([unready, loser("b"), loser("c")]))).toBe("wait b NotReady 3");
    expect(line(plan([unready, loser("b", { ready: false })]))).toBe("evict b Evicting 2");
    expect(line(plan([unready, other("b")]))).toBe("evict a Evicting 1");
  });
  it("waits while a proxy of the subset is not connected: its pod may lead", () => {
    expect(line(plan([loser("a", { connected: false, retains: false }), loser("b"), loser("c")]))).toBe("wait b NotReported 2");
  });
  it("waits half a minute for a known leader, if the order depends on it", () => {
    const leaderless = [loser("a"), loser("b")];
    const step = plan(leaderless);
    expect(step).toMatchObject({ kind: "wait", record: { reason: "LeaderUnknown" }, recheckMs: 30_000 });
    const previous = step.kind === "none" ? undefined : step.record;
    expect(line(plan(leaderless, { previous, nowMs: Date.parse(NOW) + 29_000 }))).toBe("wait a LeaderUnknown 2");
    expect(line(plan(leaderless, { previous, nowMs: Date.parse(NOW) + 30_000 }))).toBe("evict a Evicting 2");
    expect(line(plan(leaderless, { hasLock: false }))).toBe("evict a Evicting 2");
    expect(line(plan([loser("a"), other("b")]))).toBe("evict a Evicting 1");
  });
  it("waits after a refusal for the time that the API server gives, with the refusal's reason, then requests again", () => {
    const refusalOf = () => ({ reason: "PodDisruptionBudget" as const, message: "no", retryAtMs: Date.parse(NOW) + 4_000 });
    const refused = plan(three, { previous: record("b"), refusalOf, nowMs: Date.parse(NOW) + 1_000 });
    expect(refused).toMatchObject({
      kind: "wait",
      recheckMs: 3_000,
      record: { reason: "PodDisruptionBudget", expected: 3, since: NOW, message: "no" },
    });
    const previous = refused.kind === "none" ? undefined : refused.record;
    const again = plan(three, { previous, refusalOf, nowMs: Date.parse(NOW) + 4_000 });
    expect(line(again)).toBe("evict b PodDisruptionBudget 3");
    expect(again).toMatchObject({ record: { since: NOW } });
  });
  it("waits for the budget that refuses, with the start of the wait, also if no leader is known", () => {
    const leaderless = [loser("a"), loser("b")];
    let nowMs = Date.parse(NOW);
    let refusal: Refusal | undefined;
    let previous: RestartRecord | undefined;
    const seen = new Set<string>();
    for (let asked = 0; asked < 10; ) {
      const step = plan(leaderless, { previous, refusalOf: () => refusal, nowMs });
      if (step.kind === "none") expect.fail();
      previous = step.record;
      seen.add(`${step.record.reason} ${step.record.since}`);
      nowMs += step.kind === "wait" ? (step.recheckMs ?? 1_000) : 1;
      if (step.kind !== "evict") continue;
      refusal = { reason: "PodDisruptionBudget", message: "no", retryAtMs: nowMs + 15_000 };
      asked++;
    }
    expect([...seen]).toEqual([`LeaderUnknown ${NOW}`, `Evicting ${NOW}`, `PodDisruptionBudget ${NOW}`]);
  });
  it("waits until the need has lasted long enough, for any next pod, and not while the app is paused", () => {
    const first = plan(three, { settleMs: 20_000 });
    expect(first).toMatchObject({ kind: "wait", record: { pod: "b", reason: "Settling", since: NOW }, recheckMs: 20_000 });
    const previous = first.kind === "none" ? undefined : first.record;
    const moved = [loser("a"), leader("b"), loser("c")];
    const later = plan(moved, { settleMs: 20_000, previous, nowMs: Date.parse(NOW) + 5_000 });
    expect(later).toMatchObject({ record: { pod: "a", reason: "Settling", since: NOW }, recheckMs: 15_000 });
    expect(line(plan(three, { settleMs: 20_000, previous, nowMs: Date.parse(NOW) + 20_000 }))).toBe("evict b Evicting 3");
    expect(line(plan(three, { settleMs: 20_000, previous, isPaused: true }))).toBe("wait b Paused 3");
  });
  it("waits again for the need to last, if the edit was undone and other pods need a restart now", () => {
    const others = [other("b"), loser("c", { subset: "canary" })];
    expect(line(plan(others, { settleMs: 20_000, previous: record("b") }))).toBe("wait c Settling 1");
    const hindered: RestartRecord = { subset: "", pod: "b", uid: "uid-b", since: NOW, left: 1, reason: "NotReady" };
    expect(line(plan(others, { settleMs: 20_000, previous: hindered }))).toBe("wait c Settling 1");
    const settling = { ...hindered, reason: "Settling" };
    const step = plan(others, { settleMs: 20_000, previous: settling, nowMs: Date.parse(LATER) });
    expect(step).toMatchObject({ record: { since: LATER }, recheckMs: 20_000 });
  });
  it("waits again for the need to last after a pause, also if an eviction was requested before", () => {
    const previous = record("b", { reason: "Paused" });
    const step = plan(three, { settleMs: 20_000, previous });
    expect(step).toMatchObject({ kind: "wait", record: { pod: "b", reason: "Settling", expected: 3 }, recheckMs: 20_000 });
    const settling = record("b", { reason: "Settling" });
    expect(line(plan(three, { settleMs: 20_000, previous: settling, nowMs: Date.parse(LATER) }))).toBe("evict b Evicting 3");
  });
  it("waits for the need to last once in a roll, not before each pod", () => {
    const previous = record("gone", { expected: 2 });
    expect(line(plan(three, { settleMs: 20_000, previous, recentRestarts: () => 1 }))).toBe("evict b Evicting 3");
    expect(line(plan(three, { settleMs: 20_000, previous, recentRestarts: () => 3 }))).toBe("wait b Settling 3");
    expect(line(plan(three, { settleMs: 20_000, previous: record("b") }))).toBe("evict b Evicting 3");
  });
});

describe("planRestart with a record", () => {
  const rest = [leader("a"), loser("c")];

  it("waits while the evicted pod is ending, for any time and after any other change", () => {
    const ending = loser("b", { terminating: true, retains: false });
    expect(line(plan([...rest, ending], { previous: record("b") }))).toBe("wait b Evicting 3");
    expect(line(plan([...rest, ending], { previous: record("b"), isPaused: true }))).toBe("wait b Evicting 3");
    expect(line(plan([other("a"), ending], { previous: record("b") }))).toBe("wait b Evicting 1");
  });
  it("waits for as many ready pods as before in the subset, and names the reason", () => {
    const step = plan([...rest, other("b2", { ready: false }), other("d", { subset: "canary" })], {
      previous: record("b"),
      nowMs: Date.parse(LATER),
    });
    expect(step).toMatchObject({
      kind: "wait",
      isShort: false,
      record: {
        pod: "b",
        uid: "uid-b",
        expected: 3,
        left: 2,
        since: LATER,
        reason: "NotReady",
        message: "pod b is gone and 2 of 3 pods of the default subset are ready: pod b2 is not ready",
      },
    });
    const missing = plan(rest, { previous: record("b") });
    expect(missing).toMatchObject({ isShort: true, record: { message: expect.stringContaining("no new pod was made yet") } });
  });
  it.each([
    ["does not start", [other("b", { uid: "uid-new", ready: false, running: false, neverRanSinceMs: Date.parse(NOW) })]],
    ["is not made", []],
  ])("waits half an hour for a replacement that %s, also beyond the five minutes of other pods, and then goes on", (_, added) => {
    const pods = [...rest, ...added];
    const first = plan(pods, { previous: record("b") });
    expect([line(first), first]).toEqual(["wait b NotReady 2", expect.objectContaining({ recheckMs: 1_800_000 })]);
    const previous = first.kind === "none" ? undefined : first.record;
    const at = (minutes: number) => plan(pods, { previous, nowMs: Date.parse(NOW) + minutes * 60_000 });
    expect(line(at(29))).toBe("wait b NotReady 2");
    expect(at(30)).toMatchObject({ kind: "evict", record: { pod: "c", expected: 2 } });
    expect(at(30).finished).toBeUndefined();
  });
  it("waits without a limit for a replacement that has run and is not ready: the next one may fail in the same way", () => {
    const previous = record("b", { reason: "NotReady" });
    const step = plan([...rest, other("b2", { ready: false })], { previous, nowMs: Date.parse(NOW) + 86_400_000 });
    expect([line(step), step]).toEqual(["wait b NotReady 2", expect.not.objectContaining({ recheckMs: expect.anything() })]);
  });
  it("treats a pod of the same name with another uid as another pod", () => {
    const previous = record("b");
    expect(line(plan([...rest, other("b", { uid: "uid-new", ready: false })], { previous }))).toBe("wait b NotReady 2");
    const step = plan([...rest, other("b", { uid: "uid-new" })], { previous });
    expect(line(step)).toBe("evict c Evicting 2");
    expect(step.finished).toEqual({ ...previous, left: 2 });
  });
  it("is done when the replacement of the last pod is ready", () => {
    const previous = record("a");
    expect(line(plan([other("a2", { ready: false }), other("b"), other("c")], { previous }))).toBe("wait a NotReady 0");
    expect(plan([other("a2"), other("b"), other("c")], { previous })).toEqual({
      kind: "none",
      finished: { ...previous, left: 0 },
    });
  });
  it("continues with fewer pods once the workload wants no more", () => {
    expect(line(plan(rest, { previous: record("b"), hasAllWanted: true }))).toBe("evict c Evicting 2");
  });
  it("is short if the spec no longer has the subset, because its new pods are in another subset", () => {
    const step = plan([...rest, other("b2", { ready: false })], { previous: record("b", { subset: "gone" }) });
    expect(step).toMatchObject({ kind: "wait", isShort: true });
  });
  it("evicts the recorded pod, even if it has become the leader: its eviction may have been requested", () => {
    const step = plan([leader("a"), loser("b")], { previous: record("a", { expected: 2 }) });
    expect(line(step)).toBe("evict a Evicting 2");
  });
  it("keeps the record of a possible eviction while something else prevents it", () => {
    const previous = record("b");
    const unready = [leader("a"), loser("b"), loser("c"), other("d", { ready: false })];
    expect(plan(unready, { previous })).toMatchObject({ kind: "wait", record: { pod: "b", reason: "NotReady", expected: 3 } });
    expect(plan(unready, { previous, isPaused: true })).toMatchObject({ record: { reason: "Paused", expected: 3 } });
  });
  it("requests the eviction of an existing pod again, because the first request is uncertain", () => {
    const step = plan([leader("a"), loser("b"), loser("c")], {
      previous: record("b", { expected: 2 }),
      nowMs: Date.parse(LATER),
    });
    expect(step).toMatchObject({ kind: "evict", record: { pod: "b", since: NOW, expected: 3 } });
  });
  it("does not evict a pod that no longer retains anything, and no pod if the edit was undone", () => {
    expect(line(plan([leader("a"), other("b"), loser("c")], { previous: record("b") }))).toBe("evict c Evicting 2");
    expect(plan([other("a"), other("b")], { previous: record("b") })).toEqual({ kind: "none" });
  });
  it("ignores a record that only gives the reason of a wait", () => {
    const waiting: RestartRecord = { subset: "", pod: "b", uid: "uid-b", since: NOW, left: 3, reason: "Paused" };
    expect(plan([other("a")], { previous: waiting })).toEqual({ kind: "none" });
    expect(line(plan(rest, { previous: waiting }))).toBe("evict c Evicting 2");
  });
  it("expects only as many ready pods as before: an unready pod needs no ready replacement", () => {
    const pods = [other("a", { leader: true }), loser("b", { ready: false })];
    const step = plan(pods);
    expect(step).toMatchObject({ kind: "evict", record: { pod: "b", expected: 1 } });
    const previous = step.kind === "none" ? undefined : step.record;
    expect(line(plan([other("a"), other("b2", { ready: false })], { previous }))).toBe("none");
  });
});
