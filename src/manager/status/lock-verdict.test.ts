import { describe, expect, it } from "vitest";
import { appPod as pod, proxyFacts } from "../../../test/support/pod-facts.ts";
import { VIRTUAL_APP_WORDS } from "../../../test/support/source-words.ts";
import type { LockAccessMessage } from "../../mesh/contract/messages.ts";
import type { AppPod } from "../../mesh/handover/app-pod.ts";
import type { ProxyFacts } from "../../mesh/handover/proxy-facts.ts";
import { lockVerdict } from "./lock-verdict.ts";

const words = VIRTUAL_APP_WORDS;
const access = (lockName: string, deniedVerbs: string[] = [], more: Partial<LockAccessMessage> = {}): LockAccessMessage => ({
  lockName,
  resource: "leases.coordination.k8s.io",
  deniedVerbs,
  reason: "",
  ...more,
});
const proxy = (lock: LockAccessMessage | null, leader = false) => proxyFacts({ lock, leader });
const verdict = (pods: AppPod[], proxies: Record<string, ProxyFacts> = {}, lockName = "lock") =>
  lockVerdict({ pods, lockName, words, factsOf: (key) => proxies[key] });

describe("the condition LockPermitted, if denied", () => {
  it("is False if a subset's pods are denied, with the rules that their Role lacks", () => {
    expect(
      verdict([pod("a", ""), pod("c", "v2")], { "shop/c": proxy(access("lock---v2", ["get", "create", "update"])) }),
    ).toEqual({
      status: "False",
      reason: "LockDenied",
      message:
        'the pods of subset "v2" cannot elect a leader: they may not get, create, update leases.coordination.k8s.io "lock---v2" in ' +
        'namespace "shop"; add to their Role there: ' +
        '{"apiGroups":["coordination.k8s.io"],"resources":["leases"],"resourceNames":["lock---v2"],"verbs":["get","update"]} and ' +
        '{"apiGroups":["coordination.k8s.io"],"resources":["leases"],"verbs":["create"]}',
    });
  });

  it("contains an empty group for the core group, the API server's reason, and the number of further subsets", () => {
    const { message } = verdict([pod("c", "v2"), pod("d", "v3")], {
      "shop/c": proxy(access("lock---v2", ["update"], { resource: "configmaps", reason: "no rule" })),
      "shop/d": proxy(access("lock---v3", ["get"])),
    });
    expect(message).toContain('{"apiGroups":[""],"resources":["configmaps"],"resourceNames":["lock---v2"],"verbs":["update"]}');
    expect(message).toContain('in namespace "shop" (no rule);');
    expect(message).toMatch(/; 1 more subsets are denied theirs$/);
  });

  it("is False even if another pod of the subset leads: its next renewal may fail", () => {
    const proxies = { "shop/c": proxy(access("lock---v2", ["update"])), "shop/d": proxy(access("lock---v2"), true) };
    expect(verdict([pod("c", "v2"), pod("d", "v2")], proxies).status).toBe("False");
  });
});

describe("the condition LockPermitted, for a lock that the app does not name", () => {
  const unnamedLock = { lockName: "op", resource: "leases.coordination.k8s.io" };
  const refused = proxyFacts({ unnamedLock });

  it("is False if the app names another lock, which no pod uses", () => {
    expect(verdict([pod("a", ""), pod("c", "v2")], { "shop/a": proxy(null), "shop/c": refused })).toEqual({
      status: "False",
      reason: "LockNotNamed",
      message:
        'pod c of subset "v2" is refused leases.coordination.k8s.io "op" in namespace "shop": "op" looks like a leader-election ' +
        'lock, and the VirtualApp names "lock": if it is the operator\'s lock, delete the VirtualApp, wait until it is deleted, ' +
        'and create it again with spec.configuration.controller.leaderElectionName "op"',
    });
  });

  it("is False if the app names no lock, also for a pod of the default subset", () => {
    const { reason, message } = verdict([pod("a", "")], { "shop/a": refused }, "");
    expect(reason).toBe("LockNotNamed");
    expect(message).toMatch(/^pod a of the default subset is .* set spec.configuration.controller.leaderElectionName to "op"$/);
  });

  it("is no longer False if the app names the lock, or while the subset leads by the lock that the app names", () => {
    const pods = [pod("c", "v2"), pod("d", "v2"), pod("a", ""), pod("b", "")];
    const leads = proxy(null, true);
    expect(verdict(pods, { "shop/c": refused, "shop/d": leads, "shop/a": leads, "shop/b": refused }).reason).toBe("Permitted");
    expect(verdict(pods, { "shop/c": refused, "shop/d": proxy(access("lock---v2")) }).reason).toBe("Permitted");
    expect(verdict(pods, { "shop/c": refused }, "op").reason).toBe("NotReviewed");
    expect(verdict([pod("c", "v2", { ended: true })], { "shop/c": refused }).reason).toBe("NotRenamed");
  });

  it("has the reason LockDenied first, because a denied lock is certain", () => {
    const denied = proxy(access("lock---v2", ["get"]));
    expect(verdict([pod("c", "v2"), pod("a", "")], { "shop/c": denied, "shop/a": refused }).reason).toBe("LockDenied");
  });

  it("stays False under a new manager until all proxies have registered", () => {
    const before = { status: "False", reason: "LockNotNamed", message: "m" } as const;
    for (const [lockName, now] of [
      ["", "NoLock"],
      ["lock", "NotRenamed"],
    ] as const) {
      const facts = { pods: [pod("a", "")], lockName, words, before };
      expect(lockVerdict({ ...facts, factsOf: () => undefined })).toEqual(before);
      expect(lockVerdict({ ...facts, factsOf: () => proxy(null) }).reason).toBe(now);
    }
  });
});

describe("the condition LockPermitted, without a report", () => {
  it("is Unknown while no pod has used a subset's lock, which may have another name than the VirtualApp says", () => {
    expect(verdict([pod("c", "v2")], { "shop/c": proxy(null) })).toMatchObject({
      status: "Unknown",
      reason: "NotReviewed",
      message: expect.stringContaining('really named "lock"'),
    });
    expect(verdict([pod("c", "v2")]).status).toBe("Unknown");
  });

  it("is Unknown while the only report is about the lock of the pod's previous subset", () => {
    expect(verdict([pod("c", "v2")], { "shop/c": proxy(access("lock---v1", ["get"])) }).status).toBe("Unknown");
  });
});

it("the previous verdict stays until the subset's proxies have registered with a new manager", () => {
  const before = { status: "False", reason: "LockDenied", message: "m" } as const;
  const facts = { pods: [pod("c", "v2")], lockName: "lock", words, before };
  expect(lockVerdict({ ...facts, factsOf: () => undefined })).toEqual(before);
  expect(lockVerdict({ ...facts, factsOf: () => proxy(null) }).status).toBe("Unknown");
});

describe("the condition LockPermitted, if allowed", () => {
  it("is True if the API server allows the lock, or a pod already leads", () => {
    expect(verdict([pod("c", "v2")], { "shop/c": proxy(access("lock---v2")) })).toEqual({
      status: "True",
      reason: "Permitted",
      message: 'the operator may use "lock---v2"',
    });
    expect(verdict([pod("c", "v2")], { "shop/c": proxy(null, true) }).status).toBe("True");
  });

  it("is True if no lock is renamed: no lock, no pods in a subset, or only pods that have ended or have no proxy of this app", () => {
    expect(verdict([pod("c", "v2")], {}, "").reason).toBe("NoLock");
    const others = [pod("a", ""), pod("b", "v2", { ended: true }), pod("d", "v2", { proxy: "none" })];
    expect(verdict(others)).toMatchObject({ status: "True", reason: "NotRenamed" });
  });

  it("has a bounded message, for any number of subsets", () => {
    const pods = Array.from({ length: 64 }, (_, index) => pod(`p${index}`, `s${index}`));
    const { message } = verdict(pods, Object.fromEntries(pods.map(({ name }) => [`shop/${name}`, proxy(null, true)])));
    expect(message).toMatch(/, and 54 more$/);
  });
});
