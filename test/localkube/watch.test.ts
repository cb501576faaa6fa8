import { describe, expect, it } from "vitest";
import { createFakeClock } from "../support/fake-clock.ts";
import type { StoredObject } from "./model/object.ts";
import { Registry, type ResourceType } from "./model/registry.ts";
import { createSelection } from "./selection.ts";
import { Store } from "./store.ts";
import { runWatch, type WatchEvent, type WatchSink } from "./watch.ts";

const R = "/configmaps";
const type = new Registry().find("", "v1", "configmaps") as ResourceType;

function object(name: string, labels: Record<string, string> = {}): StoredObject {
  const metadata = { name, namespace: "ns", uid: name, resourceVersion: "", creationTimestamp: "", labels };
  return { apiVersion: "v1", kind: "ConfigMap", metadata };
}

function brief(event: WatchEvent): string {
  if (event.type === "BOOKMARK") return `BOOKMARK ${event.version}${event.initialEventsEnd ? " end" : ""}`;
  return event.type === "ERROR"
    ? `ERROR ${event.object.code}`
    : `${event.type} ${event.object.metadata.name}@${event.object.metadata.resourceVersion}`;
}

function start(store: Store, text: string, accepts = Number.POSITIVE_INFINITY) {
  const clock = createFakeClock();
  const events: string[] = [];
  const sink: WatchSink = {
    send: (event) => events.push(brief(event)) <= accepts,
    end: (how) => events.push(`end: ${how}`),
  };
  const query = new URLSearchParams(text);
  const close = runWatch(store, type, createSelection(type, "ns", query), query, sink, {
    clock,
    bookmarkMs: 1000,
    maxMs: 60_000,
  });
  return { clock, events, close };
}

describe("watches", () => {
  it("show what enters and leaves a selection, with versions that never go back", () => {
    const store = new Store();
    const { events } = start(store, "labelSelector=app%3Dx");
    store.put(R, object("a"));
    store.put(R, object("a", { app: "x" }));
    store.put(R, object("a", { app: "x", more: "" }));
    store.put(R, object("a", { app: "y" }));
    store.remove(R, "ns", "a");
    expect(events).toEqual(["ADDED a@3", "MODIFIED a@4", "DELETED a@5"]);
  });

  it("resume after a version, or answer that it is too old", () => {
    const store = new Store();
    store.put(R, object("a"));
    store.put(R, object("b"));
    expect(start(store, "resourceVersion=2").events).toEqual(["ADDED b@3"]);
    store.compact();
    expect(start(store, "resourceVersion=2").events).toEqual(["ERROR 410", "end: done"]);
  });

  it("stream a list and mark its end with a bookmark", () => {
    const store = new Store();
    store.put(R, object("b"));
    store.put(R, object("a"));
    const { events } = start(store, "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true");
    expect(events).toEqual(["ADDED a@3", "ADDED b@2", "BOOKMARK 3 end"]);
  });

  it("send bookmarks at their interval if requested, and end at timeoutSeconds", async () => {
    const store = new Store();
    const { clock, events } = start(store, "resourceVersion=1&allowWatchBookmarks=true&timeoutSeconds=3");
    await clock.advance(1000);
    store.put("/secrets", object("elsewhere"));
    await clock.advance(10_000);
    expect(events).toEqual(["BOOKMARK 1", "BOOKMARK 2", "end: done"]);
    expect(clock.pending).toBe(0);
    const silent = start(store, "resourceVersion=1");
    await silent.clock.advance(59_999);
    expect(silent.events).toEqual([]);
  });

  it("are cut off when their reader is too slow and leave no listener", async () => {
    const store = new Store();
    const { clock, events } = start(store, "allowWatchBookmarks=true", 1);
    for (const name of ["a", "b", "c"]) store.put(R, object(name));
    await clock.advance(10_000);
    expect(events).toEqual(["ADDED a@2", "ADDED b@3", "end: too slow"]);
    expect(clock.pending).toBe(0);
  });

  it("leave no listener when the client closes", () => {
    const store = new Store();
    const { clock, events, close } = start(store, "allowWatchBookmarks=true");
    close();
    store.put(R, object("a"));
    expect(events).toEqual([]);
    expect(clock.pending).toBe(0);
  });
});
