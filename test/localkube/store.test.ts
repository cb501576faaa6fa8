import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { StoredObject } from "./model/object.ts";
import { Store } from "./store.ts";

const R = "/configmaps";

function object(name: string, value = ""): StoredObject {
  const metadata = { name, namespace: "ns", uid: name, resourceVersion: "", creationTimestamp: "" };
  return { apiVersion: "v1", kind: "ConfigMap", metadata, value };
}

const shown = (entries: [string, StoredObject][] | undefined) =>
  entries?.map(([key, { value, metadata }]) => `${key}=${String(value)}@${metadata.resourceVersion}`);

describe("Store", () => {
  it("gives every write of any resource the next version", () => {
    const store = new Store();
    const versions = [store.put(R, object("a")), store.put("/secrets", object("a")), store.put(R, object("b"))];
    expect(versions.map(({ metadata }) => metadata.resourceVersion)).toEqual(["2", "3", "4"]);
    expect(store.remove(R, "ns", "a")?.metadata.resourceVersion).toBe("5");
    expect(store.remove(R, "ns", "a")).toBeUndefined();
  });

  it("reads back every earlier state, after any sequence of writes", () => {
    const step = fc.record({ name: fc.constantFrom("a", "b", "c"), remove: fc.boolean() });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
        const store = new Store();
        const states = new Map([[store.version, shown(store.entries(R))]]);
        for (const [index, { name, remove }] of steps.entries()) {
          if (remove) store.remove(R, "ns", name);
          else store.put(R, object(name, String(index)));
          states.set(store.version, shown(store.entries(R)));
        }
        for (const [version, state] of states) expect(shown(store.entriesAt(R, version))).toEqual(state);
      }),
      { numRuns: 100 },
    );
  });

  it("keeps a bounded history and returns undefined before its start", () => {
    const store = new Store({ historySize: 4 });
    for (let index = 0; index < 20; index++) store.put(R, object("a", String(index)));
    expect(store.eventsSince(R, 2)).toBeUndefined();
    expect(store.entriesAt(R, 2)).toBeUndefined();
    expect(store.eventsSince(R, store.version - 3)).toHaveLength(3);
    store.compact();
    expect(store.eventsSince(R, store.version - 1)).toBeUndefined();
    expect(store.eventsSince(R, store.version)).toEqual([]);
    expect(store.eventsSince("/never-seen", store.version - 1)).toBeUndefined();
  });

  it("calls listeners for each write in order, with the previous state", () => {
    const store = new Store();
    const seen: string[] = [];
    const stop = store.listen(R, ({ type, version, previous }) =>
      seen.push(`${type} ${version} ${String(previous?.value ?? "-")}`),
    );
    store.put(R, object("a", "1"));
    store.put("/secrets", object("s"));
    store.put(R, object("a", "2"));
    store.remove(R, "ns", "a");
    stop();
    store.put(R, object("a", "3"));
    expect(seen).toEqual(["ADDED 2 -", "MODIFIED 4 1", "DELETED 5 2"]);
  });
});
