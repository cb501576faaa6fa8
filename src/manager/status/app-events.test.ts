import { describe, expect, it } from "vitest";
import type { AppStatus, LastHandover } from "../../api/app-status.ts";
import { appEvents, WARNINGS } from "./status-feed.ts";

const status = (type: string, is: "True" | "False", reason: string, message = "m"): AppStatus => ({
  routeVersion: 3,
  conditions: [{ type, status: is, reason, message, lastTransitionTime: "2026-01-01T00:00:00Z" }],
});
const moved = (more: Partial<LastHandover> = {}): AppStatus => ({
  routeVersion: 3,
  lastHandover: { from: "", to: "canary", namespaces: 2, finishedAt: "2026-01-01T00:00:01.5Z", result: "Moved", ...more },
});
/** A status in which all Warnings apply. */
const SAID: Readonly<Record<string, AppStatus>> = {
  ConfigRejected: status("Accepted", "False", "Invalid", "spec.selector: empty"),
  SnapshotRefused: status("Ready", "False", "SnapshotRefused"),
  OwnershipConflict: status("Ready", "False", "OwnershipConflict"),
  ProxyLost: status("Ready", "False", "ProxyLost"),
  LockDenied: status("LockPermitted", "False", "LockDenied", "may not get"),
  LockNotNamed: status("LockPermitted", "False", "LockNotNamed", "looks like a lock"),
  ConfirmationRequired: status("Converged", "False", "ConfirmationRequired"),
  InjectionMissed: status("TrafficIntercepted", "False", "PodsWithoutProxy"),
  WebhookNotIntercepted: status("WebhookIntercepted", "False", "PortNotNamed"),
  MoveStuck: status("Ready", "False", "NotConnected"),
};

describe("every Warning", () => {
  it.each(WARNINGS)(
    "$reason stands in the condition $condition, in the same words, and is told once",
    ({ reason, condition }) => {
      const said = SAID[reason];
      if (said === undefined) throw new Error("no status says it");
      const [row] = said.conditions ?? [];
      expect(row?.type).toBe(condition);
      expect(appEvents(undefined, said)).toEqual([{ type: "Warning", reason, message: row?.message }]);
      expect(appEvents(said, said)).toEqual([]);
    },
  );

  it("is repeated with a new message if the message names what to correct, and never because of an age", () => {
    for (const { reason, repeatsMessage } of WARNINGS) {
      const said = SAID[reason];
      const other = { ...said, conditions: said?.conditions?.map((row) => ({ ...row, message: "other" })) };
      expect(appEvents(said, other as AppStatus)).toHaveLength(repeatsMessage ? 1 : 0);
    }
  });

  it("is only SnapshotRefused for a move that a refused snapshot delays", () => {
    const told = appEvents(undefined, status("Ready", "False", "SnapshotRefused"));
    expect(told.map(({ reason }) => reason)).toEqual(["SnapshotRefused"]);
  });

  it.each(["SnapshotRefused", "OwnershipConflict", "LockDenied", "LockNotNamed"])(
    "MoveStuck is sent once, when the message of Ready with the reason %s names an old wait and its remedy",
    (reason) => {
      const before = status("Ready", "False", reason, "m");
      const stuck = status("Ready", "False", reason, "m; team-b waits 5 min for pod a0; to do: restart it");
      expect(appEvents(before, before)).toEqual([]);
      expect(appEvents(before, stuck).map((event) => event.reason)).toEqual(["MoveStuck"]);
      expect(appEvents(stuck, stuck)).toEqual([]);
      const wait = { pod: "a0", reason: "SnapshotRefused", since: "2026-01-01T00:00:00Z" };
      const handover = { phase: "Draining" as const, since: wait.since, done: 0, total: 1, waitingOn: [wait] };
      expect(appEvents(before, { ...stuck, handover })).toEqual([]);
    },
  );
});

describe("Normal events", () => {
  it("report the beginning of a handover once, also while it moves more namespaces", () => {
    const moving = (count: number, startedAt: string): AppStatus => ({
      routeVersion: 3,
      namespaces: { total: 9, moving: count, held: 0 },
      handover: { from: "", to: "canary", phase: "Draining", since: startedAt, startedAt, done: 0, total: 2 },
    });
    const message = 'begins to move 2 namespaces from the default subset to subset "canary", route 3';
    const begun = { type: "Normal", reason: "MovingNamespaces", message };
    expect(appEvents(undefined, moving(2, "a"))).toEqual([begun]);
    expect(appEvents(moving(2, "a"), moving(5, "a"))).toEqual([]);
    expect(appEvents(moving(5, "a"), moving(2, "b"))).toEqual([begun]);
    expect(appEvents(undefined, moving(0, "d"))).toEqual([]);
    const paused = { ...moving(2, "c").handover, phase: "Paused" } as AppStatus["handover"];
    expect(appEvents(undefined, { ...moving(2, "c"), handover: paused } as AppStatus)).toEqual([]);
  });
  it("report moved namespaces, and the longest time without a writer", () => {
    expect(appEvents(undefined, moved({ noWriterSeconds: 0.0384 }))).toEqual([
      {
        type: "Normal",
        reason: "MovedNamespaces",
        message:
          'moved 2 namespaces from the default subset to subset "canary", route 3; nobody could write to them for 38 ms at most',
      },
    ]);
    const [slow] = appEvents(moved(), moved({ finishedAt: "2026-01-01T00:01:00Z", noWriterSeconds: 41.26, namespaces: 1 }));
    expect(slow?.message).toBe(
      'moved 1 namespace from the default subset to subset "canary", route 3; nobody could write to them for 41.3 s at most',
    );
    expect(appEvents(moved(), moved())).toEqual([]);
  });

  it("report a move in both directions as a move between the subsets, at most eight of them", () => {
    const [both] = appEvents(undefined, moved({ between: ["", "canary"] }));
    expect(both?.message).toBe('moved 2 namespaces between the default subset and subset "canary", route 3');
    const [more] = appEvents(undefined, moved({ between: ["", "canary", "v3"], result: "Undone" }));
    expect(more?.message).toBe('the move of 2 namespaces between the default subset, subset "canary" and subset "v3" was undone');
  });

  it("report that only resources got other owners", () => {
    const [divided] = appEvents(undefined, moved({ namespaces: 0, noWriterSeconds: 0.5 }));
    expect(divided?.message).toBe(
      'divided the operator\'s resources between the default subset and subset "canary", route 3; no namespace moved; nobody could write to them for 500 ms at most',
    );
    const [undone] = appEvents(undefined, moved({ namespaces: 0, result: "Undone" }));
    expect(undone?.message).toBe(
      'the division of the operator\'s resources between the default subset and subset "canary" was undone',
    );
  });

  it("report an undone move", () => {
    expect(appEvents(undefined, moved({ result: "Undone" }))).toMatchObject([
      { reason: "MoveUndone", message: 'the move of 2 namespaces from the default subset to subset "canary" was undone' },
    ]);
  });

  it("report that a lock is permitted again", () => {
    const permitted = status("LockPermitted", "True", "Permitted", "may");
    const denied = status("LockPermitted", "False", "LockDenied", "may not get");
    expect(appEvents(denied, permitted)).toEqual([{ type: "Normal", reason: "LockPermitted", message: "may" }]);
    expect(appEvents(undefined, permitted)).toEqual([]);
  });
});
