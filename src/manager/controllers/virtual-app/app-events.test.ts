import { describe, expect, it } from "vitest";
import type { VirtualAppStatus } from "../../../api/virtual-app-status.ts";
import { appEvents } from "./app-events.ts";

const status = (type: string, is: "True" | "False", reason: string, message = "m", moving = 0): VirtualAppStatus => ({
  routeVersion: 3,
  namespaces: { total: 9, moving, held: 0 },
  conditions: [{ type, status: is, reason, message, lastTransitionTime: "2026-01-01T00:00:00Z" }],
});

describe("appEvents", () => {
  it("tells once of a refused spec, and again only when the reason changes", () => {
    const refused = status("Accepted", "False", "Invalid", "spec.selector: empty");
    expect(appEvents(undefined, refused)).toEqual([
      { type: "Warning", reason: "ConfigRejected", message: "spec.selector: empty" },
    ]);
    expect(appEvents(refused, refused)).toEqual([]);
    expect(appEvents(refused, status("Accepted", "False", "Invalid", "other"))).toHaveLength(1);
  });
  it("tells when namespaces have moved", () => {
    const moving = status("Ready", "True", "InSync", "m", 2);
    expect(appEvents(moving, status("Ready", "True", "InSync"))).toEqual([
      { type: "Normal", reason: "MovedNamespaces", message: "2 namespaces have moved, route 3" },
    ]);
    expect(appEvents(moving, moving)).toEqual([]);
  });
  it("tells when a subset is denied its lock, again when what is denied changes, and when it is mended", () => {
    const denied = status("LockPermitted", "False", "LockDenied", "may not get");
    expect(appEvents(undefined, denied)).toEqual([{ type: "Warning", reason: "LockDenied", message: "may not get" }]);
    expect(appEvents(denied, denied)).toEqual([]);
    expect(appEvents(denied, status("LockPermitted", "False", "LockDenied", "may not update"))).toHaveLength(1);
    const permitted = status("LockPermitted", "True", "Permitted", "may");
    expect(appEvents(denied, permitted)).toEqual([{ type: "Normal", reason: "LockPermitted", message: "may" }]);
    expect(appEvents(undefined, permitted)).toEqual([]);
  });
  it("tells of refused snapshots and of pods without a proxy when they begin", () => {
    const refused = status("Ready", "False", "SnapshotRefused");
    expect(appEvents(status("Ready", "True", "InSync"), refused)).toMatchObject([{ reason: "SnapshotRefused" }]);
    expect(appEvents(refused, refused)).toEqual([]);
    const bare = status("TrafficIntercepted", "False", "PodsWithoutProxy");
    expect(appEvents(undefined, bare)).toMatchObject([{ reason: "InjectionMissed" }]);
    expect(appEvents(bare, bare)).toEqual([]);
  });
});
