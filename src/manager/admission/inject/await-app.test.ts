import { beforeEach, describe, expect, it } from "vitest";
import { createFakeClock, type FakeClock } from "../../../../test/support/fake-clock.ts";
import { appsIn } from "../../../../test/support/source-apps.ts";
import { sampleVirtualApp } from "../../../../test/support/virtual-app.ts";
import type { VirtualApp } from "../../../api/virtual-app.ts";
import { createStore, type WritableStore } from "../../../runtime/store.ts";
import type { Ready } from "../server/webhook.ts";
import { createAppWait } from "./inject-webhook.ts";

const app = (name: string) =>
  ({ ...sampleVirtualApp(), metadata: { namespace: "ops", name, uid: name, resourceVersion: "1" } }) as unknown as VirtualApp;

describe("a request for an app that this replica does not know yet", () => {
  let clock: FakeClock;
  let store: WritableStore<VirtualApp>;
  let ready: Ready;
  const alive = new AbortController().signal;

  beforeEach(() => {
    clock = createFakeClock();
    store = createStore((error) => {
      throw error;
    });
    const apps = appsIn(store);
    const seen = {
      get: apps.get.bind(apps),
      list: apps.list.bind(apps),
      onChange: apps.onChange.bind(apps),
      get hasSynced() {
        return store.hasSynced;
      },
    };
    ready = createAppWait({ apps: seen, clock })({ namespace: "ops", name: "shop" });
  });
  const asked = (address = "10.0.0.1", signal: AbortSignal = alive) => {
    const state = { is: "waiting" };
    ready({ address, signal }).then(
      () => {
        state.is = "ready";
      },
      (error: { status?: { code: number } }) => {
        state.is = `refused with ${error.status?.code}`;
      },
    );
    return state;
  };

  it("waits until the app comes", async () => {
    store.replace([]);
    const state = asked();
    await clock.advance(1_900);
    store.upsert(app("other"));
    await clock.advance(0);
    expect(state.is).toBe("waiting");
    store.upsert(app("shop"));
    await clock.advance(0);
    expect([state.is, clock.pending]).toEqual(["ready", 0]);
  });

  it("waits two seconds at most, and not at all for a client that is gone", async () => {
    store.replace([]);
    const gone = new AbortController();
    const [patient, impatient, late] = [asked(), asked("10.0.0.1", gone.signal), asked("10.0.0.1", AbortSignal.abort())];
    gone.abort();
    await clock.advance(1_999);
    expect([patient.is, impatient.is, late.is]).toEqual(["waiting", "ready", "ready"]);
    await clock.advance(1);
    expect([patient.is, clock.pending]).toEqual(["ready", 0]);
  });

  it("does not wait for an app that is known, nor before the first list", async () => {
    const early = asked();
    await clock.advance(0);
    store.replace([app("shop")]);
    const known = asked();
    await clock.advance(0);
    expect([early.is, known.is, clock.pending]).toEqual(["ready", "ready", 0]);
  });

  it("a flood of names that do not exist from six addresses leaves places for others, and is turned away for a second", async () => {
    store.replace([]);
    const flood = Array.from({ length: 6 }, (_, at) => Array.from({ length: 300 }, () => asked(`10.0.0.6${at}`))).flat();
    await clock.advance(0);
    expect(flood.filter(({ is }) => is === "waiting")).toHaveLength(128 + 64 + 32 + 16 + 8 + 4);
    expect(flood.at(-1)?.is).toBe("refused with 429");
    const honest = asked("10.0.0.1");
    await clock.advance(100);
    store.upsert(app("shop"));
    await clock.advance(0);
    expect(honest.is).toBe("ready");
    store.replace([]);
    const again = asked("10.0.0.60");
    await clock.advance(1_000);
    expect(again.is).toBe("waiting");
    await clock.advance(1_000);
    expect(clock.pending).toBe(0);
  });
});
