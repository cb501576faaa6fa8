import { describe, expect, it } from "vitest";
import type { AppStatus } from "../../api/app-status.ts";
import { paceHeld, paceProgress } from "./pacing.ts";

const saying = (held: number) => ({ routeVersion: 1, namespaces: { total: 3, moving: 0, held } });

describe("the number of held namespaces", () => {
  it("the first new number is written at once, and the next one only after a while", () => {
    expect(paceHeld(saying(0), saying(7), Number.POSITIVE_INFINITY)).toEqual({ status: saying(7) });
    expect(paceHeld(saying(7), saying(0), 4_000)).toEqual({ status: saying(7), waitMs: 1_000 });
    expect(paceHeld(saying(7), saying(0), 5_000)).toEqual({ status: saying(0) });
  });

  it("other changes of a status are written at once, and a number that returns to its old value waits for nothing", () => {
    expect(paceHeld(saying(7), { ...saying(3), routeVersion: 2 }, 0)).toEqual({
      status: { ...saying(7), routeVersion: 2 },
      waitMs: 5_000,
    });
    expect(paceHeld(saying(7), saying(7), 0)).toEqual({ status: saying(7) });
    expect(paceHeld(undefined, saying(7), 0)).toEqual({ status: saying(7) });
    expect(paceHeld({ routeVersion: 1 }, saying(7), 0)).toEqual({ status: saying(7) });
  });
});

const row = (type: string, status: "True" | "False", reason: string, message = "m") => ({
  type,
  status,
  reason,
  message,
  lastTransitionTime: "2026-01-01T00:00:00Z",
});
const READY = row("Ready", "True", "InSync", "2 of 2 proxies enforce route 7");
const calm: AppStatus = {
  observedGeneration: 1,
  routeVersion: 7,
  proxies: { total: 2, connected: 2, synced: 2 },
  namespaces: { total: 4, moving: 0, held: 0 },
  subsets: [{ name: "a", namespaces: 4, readyPods: 2, pods: 2 }],
  conditions: [READY, row("Converged", "True", "InSync")],
};
/** A namespace was born, and one proxy has acknowledged its owner. */
const behind: AppStatus = {
  ...calm,
  routeVersion: 8,
  proxies: { total: 2, connected: 2, synced: 1 },
  namespaces: { total: 5, moving: 0, held: 0 },
  subsets: [{ name: "a", namespaces: 5, readyPods: 2, pods: 2 }],
  conditions: [
    { ...READY, message: "1 of 2 proxies enforce route 8" },
    row("Converged", "False", "ProxiesBehind", "pod x is behind"),
  ],
};
const inSync: AppStatus = { ...behind, conditions: calm.conditions };

describe("a status that only says that proxies are on their way", () => {
  it("is late for 5 seconds, by which time it is usually in sync", () => {
    expect(paceProgress(calm, behind, 0)).toEqual({ status: calm, waitMs: 5_000 });
    expect(paceProgress(calm, behind, 4_000)).toEqual({ status: calm, waitMs: 1_000 });
    expect(paceProgress(calm, behind, 5_000)).toEqual({ status: behind, waitMs: undefined });
  });

  it("is late for 30 seconds if the written status says already that proxies are behind", () => {
    const later = { ...behind, proxies: { total: 2, connected: 2, synced: 0 } };
    expect(paceProgress(behind, later, 0)).toEqual({ status: behind, waitMs: 30_000 });
    expect(paceProgress(behind, later, 30_000)).toEqual({ status: later, waitMs: undefined });
  });
});

const withConditions = (...conditions: NonNullable<AppStatus["conditions"]>): AppStatus => ({ ...behind, conditions });
const [, isBehind] = behind.conditions ?? [];

describe("a status is written at once", () => {
  it.each<[string, AppStatus | undefined, AppStatus]>([
    ["if everything is in sync", behind, inSync],
    ["if everything was in sync and is again, with a newer route", calm, inSync],
    ["if it is the first one", undefined, behind],
    ["if the spec has changed", calm, { ...behind, observedGeneration: 2 }],
    ["if a pod is not ready", calm, { ...behind, subsets: [{ name: "a", namespaces: 5, readyPods: 1, pods: 2 }] }],
    ["if another pod leads", calm, { ...behind, subsets: [{ name: "a", namespaces: 5, readyPods: 2, pods: 2, leader: "x" }] }],
    [
      "if a subset is not ready",
      calm,
      { ...behind, subsets: [{ name: "a", namespaces: 5, readyPods: 2, pods: 2, reason: "R" }] },
    ],
    ["if a proxy is not connected", calm, { ...behind, proxies: { total: 2, connected: 1, synced: 1 } }],
    ["if namespaces move", calm, { ...behind, namespaces: { total: 5, moving: 1, held: 0 } }],
    ["if a handover begins", calm, { ...behind, handover: { phase: "Granting", since: "", done: 0, total: 1 } as never }],
    ["if a handover ends", { ...calm, handover: { phase: "Granting", since: "", done: 0, total: 1 } as never }, behind],
    ["if Ready becomes False", calm, withConditions(row("Ready", "False", "ProxyLost"), isBehind as never)],
    ["if a manager rebuilds", calm, withConditions(READY, row("Converged", "False", "Rebuilding"))],
    [
      "if a fault has another message",
      withConditions(row("Ready", "False", "LockDenied"), isBehind as never),
      withConditions(row("Ready", "False", "LockDenied", "other"), isBehind as never),
    ],
  ])("%s", (_what, before, status) => {
    expect(paceProgress(before, status, 0)).toEqual({ status, waitMs: undefined });
  });
});
