// What the manager knows of a pod and of its proxy, for tests: a pod at rest that needs nothing, and what differs from that.

import type { AppPod } from "../../src/manager/facts/app-pods.ts";
import type { ProxyFacts } from "../../src/manager/facts/proxy-facts.ts";

/** A ready pod in the namespace "shop" that carries its app's proxy and that somebody makes anew. */
export function appPod(name: string, subset = "", more: Partial<AppPod> = {}): AppPod {
  return {
    namespace: "shop",
    name,
    uid: `uid-${name}`,
    subset,
    proxy: "own",
    running: true,
    ended: false,
    ready: true,
    terminating: false,
    controlled: true,
    ...more,
  };
}

/** A connected proxy that has registered with nothing, leads nobody and holds nothing up. */
export function proxyFacts(more: Partial<ProxyFacts> = {}): ProxyFacts {
  return {
    connected: true,
    enforced: undefined,
    outstanding: undefined,
    inDoubt: [],
    unresolved: false,
    version: 1,
    problems: [],
    leader: false,
    held: 0,
    drainingWrites: 0,
    lock: null,
    ...more,
  };
}
