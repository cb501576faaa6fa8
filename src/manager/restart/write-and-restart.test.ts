import { describe, expect, it } from "vitest";
import { table } from "../../../test/support/route-table.ts";
import { appOf } from "../../../test/support/source-apps.ts";
import { VIRTUAL_APP_WORDS } from "../../../test/support/source-words.ts";
import type { AppStatus, RestartStatus } from "../../api/app-status.ts";
import type { ShardingStatus } from "../../api/sharding-config.ts";
import type { VirtualApp } from "../../api/virtual-app.ts";
import type { StatusFeed } from "../status/status-feed.ts";
import type { RestartStep } from "./restart-plan.ts";
import { writeAndRestart } from "./restarter.ts";

const NOW = "2026-01-01T00:00:00Z";
const APP = { metadata: { namespace: "ops", name: "shop" } } as VirtualApp;
const record = (pod: string): RestartStatus => ({ subset: "", pod, uid: `uid-${pod}`, since: NOW, left: 1, reason: "Evicting" });

/**
 * One call. `stored` is the status at the time of the write, `previous` the status at the time of the plan.
 */
async function turn(feed: {
  previous?: RestartStatus;
  stored?: RestartStatus;
  rollout?: ShardingStatus["rollout"];
  isWritten?: boolean;
  requeueAfterMs?: number;
}) {
  const done: string[] = [];
  const step: RestartStep = { kind: "evict", record: record("b") };
  const of = (restart: RestartStatus | undefined): AppStatus => (restart === undefined ? {} : { restart });
  const statuses: StatusFeed = {
    previous: () => of(feed.previous),
    async write(_app, make) {
      const { isWritten = true, requeueAfterMs } = feed;
      const stored = { ...of(feed.stored), ...(feed.rollout === undefined ? {} : { rollout: feed.rollout }) };
      done.push(`write ${make(stored, NOW).restart?.pod ?? "none"}`);
      return { isWritten, ...(requeueAfterMs === undefined ? {} : { requeueAfterMs }) };
    },
    forget() {},
  };
  const restarter = {
    next: async () => step,
    carryOut() {
      done.push("evict b");
      return { requeueAfterMs: 50 };
    },
    forget() {},
  };
  const facts = {
    app: { namespace: "ops", name: "shop" },
    pods: [],
    factsOf: () => undefined,
    isPaused: false,
    hasLock: true,
    words: VIRTUAL_APP_WORDS,
    plan: { subsets: [""], desired: table([], {}), isDissolving: false, rulesFor: () => expect.fail() },
  };
  const makeStatus = (_previous: unknown, _now: string, restart: RestartStatus | undefined) => of(restart);
  const result = await writeAndRestart({ app: appOf(APP), facts, restarter, statuses, makeStatus }, new AbortController().signal);
  return { done, result };
}

describe("writeAndRestart", () => {
  it("writes the record, then evicts, and reconciles again at the earlier of both times", async () => {
    expect(await turn({})).toEqual({ done: ["write b", "evict b"], result: { requeueAfterMs: 50 } });
    expect(await turn({ requeueAfterMs: 20 })).toMatchObject({ result: { requeueAfterMs: 20 } });
  });
  it("evicts no pod if the record could not be written", async () => {
    expect(await turn({ isWritten: false })).toEqual({ done: ["write b"], result: {} });
  });
  it("keeps another manager's record, and evicts no pod", async () => {
    const other = await turn({ previous: record("a"), stored: record("c") });
    expect(other).toEqual({ done: ["write c"], result: { requeueAfterMs: 1_000 } });
  });
  it("evicts no pod while the rollout evicts one", async () => {
    const rollout = { done: 0, total: 2, pod: "a" };
    expect(await turn({ rollout: { ...rollout, waitingFor: "Evicting" } })).toEqual({
      done: ["write none"],
      result: { requeueAfterMs: 1_000 },
    });
    expect((await turn({ rollout: { ...rollout, waitingFor: "NotReady" } })).done).toEqual(["write b", "evict b"]);
  });
});
