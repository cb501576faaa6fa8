// Objects that change all the time, and the writes by which the operator's pods answer: the judge of the flows. It reads the API server's audit
// log, in which a pod's token names the pod.

import { createKubeClient } from "../../src/kube/client/client.ts";
import type { Resource } from "../../src/kube/client/resource.ts";
import type { KubeObject } from "../../src/kube/types.ts";
import { checkOwnership, type OwnerChange, violationText } from "../chaos/ownership-check.ts";
import type { Kube } from "../support/kube.ts";
import { type PodWrite, podWritesOf } from "../support/mesh/pod-writes.ts";

/** One of the Foos changes each time this has passed. */
const EVERY_MS = 50;
/** The resources that only one pod at a time may write in a namespace. */
const DIVIDED = /^(foos\/status|configmaps)$/;

interface Foo extends KubeObject {
  readonly spec?: { readonly message?: string };
}
const FOOS: Resource<Foo> = { group: "demo.ctrlmesh.io", version: "v1", resource: "foos", kind: "Foo", namespaced: true };

export interface NamedFoo {
  readonly namespace: string;
  readonly name: string;
}

export interface SteadyChanges {
  /** Changes the Foos until `stop`. @param everyMs one of the Foos changes each time this has passed */
  start(foos: readonly NamedFoo[], everyMs?: number): void;
  stop(): Promise<void>;
}

/** Changes the messages of Foos. Failures are ignored: what counts is what the operator's pods do. */
export function steadyChanges({ server, caPem, token }: Kube): SteadyChanges {
  const client = createKubeClient({ server, caPem, token: () => token, userAgent: "steady-changes" }, { maxRetries: 0 });
  let stopped = new AbortController();
  let running: Promise<unknown> = Promise.resolve();
  let count = 0;
  const change = async (foo: NamedFoo, everyMs: number, signal: AbortSignal) => {
    while (!signal.aborted) {
      const body = { spec: { message: `change ${++count}` } };
      await client.patch(FOOS, foo, { type: "merge", body }).catch(() => {});
      await new Promise((resolve) => setTimeout(resolve, everyMs));
    }
  };
  return {
    start(foos, everyMs = EVERY_MS) {
      stopped = new AbortController();
      running = Promise.all(foos.map((foo) => change(foo, everyMs * foos.length, stopped.signal)));
    },
    async stop() {
      stopped.abort();
      await running;
    },
  };
}

/** The writes of the operator's pods in these namespaces since then, oldest first. */
export function operatorWrites(kube: Kube, namespaces: readonly string[], sinceMs: number): PodWrite[] {
  return podWritesOf(kube.audit())
    .filter(
      ({ resource, namespace, receivedMs }) => DIVIDED.test(resource) && namespaces.includes(namespace) && receivedMs >= sinceMs,
    )
    .sort((a, b) => a.receivedMs - b.receivedMs);
}

/** Pods that wrote in one namespace at the same time, as text, whatever their subsets. */
export function overlaps(writes: readonly PodWrite[]): string[] {
  const { violations } = checkOwnership({
    writes,
    placeOf: ({ namespace }) => namespace,
    subsetOf: (pod) => pod,
    ownersOf: () => [],
  });
  return violations.filter(({ kind }) => kind === "overlap").map(violationText);
}

/** Writes of pods whose subset did not own the namespace, as text. */
export function wrongWriters(
  writes: readonly PodWrite[],
  subsetOf: (pod: string) => string | undefined,
  owners: Readonly<Record<string, readonly OwnerChange[]>>,
): string[] {
  const ownersOf = (namespace: string) => owners[namespace] ?? [];
  return checkOwnership({ writes, placeOf: ({ namespace }) => namespace, subsetOf, ownersOf }).violations.map(violationText);
}

/** The longest time between two writes that succeeded in one of the namespaces, from the first to the last time given. */
export function longestPauseMs(writes: readonly PodWrite[], namespaces: readonly string[], fromMs: number, toMs: number): number {
  const pauses = namespaces.flatMap((name) => {
    const own = writes.filter(({ namespace, code }) => namespace === name && code < 300);
    const times = [fromMs, ...own.map(({ answeredMs }) => answeredMs).filter((ms) => ms > fromMs && ms < toMs), toMs];
    return times.slice(1).map((ms, index) => ms - (times[index] ?? ms));
  });
  return Math.max(0, ...pauses);
}
