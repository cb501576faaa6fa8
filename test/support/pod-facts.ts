// The manager's facts about a pod and its proxy, for tests. The defaults describe an idle pod.

import { NO_REPORTS } from "../../src/mesh/contract/messages.ts";
import { FREEZE } from "../../src/mesh/contract/route-type.ts";
import type { AppFacts } from "../../src/mesh/handover/app-facts.ts";
import type { AppPod } from "../../src/mesh/handover/app-pod.ts";
import type { ProxyFacts } from "../../src/mesh/handover/proxy-facts.ts";
import { NO_CALLER_POLICY } from "../../src/mesh/ownership/snapshot.ts";

/** An app of the namespace "shop" without rules of its own for callers, losses or frozen namespaces. */
export const PLAIN_APP = {
  app: { namespace: "shop", name: "app" },
  words: undefined,
  lockName: "lock",
  callers: NO_CALLER_POLICY,
  retainsLosses: false,
} satisfies Partial<AppFacts>;

/** A ready pod in the namespace "shop" with its app's proxy and a workload that replaces it. */
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

/** A connected proxy with an empty registration: the pod does not lead and delays nothing. */
export function proxyFacts(more: Partial<ProxyFacts> = {}): ProxyFacts {
  return {
    connected: true,
    acknowledged: undefined,
    outstanding: undefined,
    inDoubt: [],
    mayHoldMore: false,
    version: 1,
    problems: {},
    ...NO_REPORTS,
    capabilities: new Set([FREEZE]),
    ...more,
  };
}
