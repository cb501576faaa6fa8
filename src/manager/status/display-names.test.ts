import { expect, test } from "vitest";
import type { AppStatus } from "../../api/app-status.ts";
import { displayedStatus, readStatus } from "./status-feed.ts";

const SINCE = "2026-01-01T00:00:00Z";
const status = (name: string): AppStatus => ({
  routeVersion: 3,
  subsets: [
    { name, namespaces: 2, readyPods: 1 },
    { name: "v2", namespaces: 1, readyPods: 1 },
  ],
  handover: { from: name, to: "v2", between: [name, "v2", "v3"], phase: "Draining", since: SINCE, done: 0, total: 1 },
  lastHandover: { from: "v2", to: name, namespaces: 1, finishedAt: SINCE, result: "Moved" },
  restart: { subset: name, pod: "a", uid: "u", since: SINCE, left: 1, reason: "Evicting" },
});

test("the default subset is written default in every field, and read as the empty string", () => {
  expect(displayedStatus(status(""))).toEqual(status("default"));
  expect(readStatus(status("default"))).toEqual(status(""));
});

test("absent fields stay absent", () => {
  expect(readStatus(undefined)).toBeUndefined();
  expect(displayedStatus({ handover: { phase: "Paused", since: SINCE, done: 0, total: 0 } })).toEqual({
    handover: { phase: "Paused", since: SINCE, done: 0, total: 0 },
  });
});
