// Leader election on a Lease, by client-go's rules: the holder renews the lease, and a contender takes it after it has seen no renewal for
// the lease's duration, by its own clock. Invariant: this process leads only between `acquire` and the end of `hold`; every write has the
// resource version that was read.
import { setTimeout as delay } from "node:timers/promises";
import type { CoordinationV1Api, V1Lease, V1LeaseSpec } from "@kubernetes/client-node";
import { V1MicroTime } from "@kubernetes/client-node";
import { deadline } from "./kubernetes.ts";
import type { Log } from "./log.ts";
import type { Settings } from "./settings.ts";

export interface Election {
  /** Resolves once this process leads. */
  acquire(signal: AbortSignal): Promise<void>;
  /** Renews until the signal fires. @throws when the lease is lost */
  hold(signal: AbortSignal): Promise<void>;
  /** Releases the lease, so that the next leader need not wait for its expiry. */
  release(): Promise<void>;
}

export interface ElectionOptions extends Pick<Settings, "lease" | "leaseDurationMs" | "renewDeadlineMs" | "retryPeriodMs"> {
  readonly api: CoordinationV1Api;
  /** Unique for each process. */
  readonly identity: string;
  readonly log: Log;
}

const NOT_FOUND = 404;
const CONFLICT = 409;

export function createElection(options: ElectionOptions): Election {
  const { api, lease, identity, log, leaseDurationMs, renewDeadlineMs, retryPeriodMs } = options;
  const { name, namespace } = lease;
  // A single request that hangs must not lose the lease.
  const within = deadline(Math.max(1000, renewDeadlineMs / 2));
  /** The lease as last seen, and the time when this content was first seen. */
  let seen: { readonly version: string; readonly atMs: number } | undefined;
  let own: V1Lease | undefined;

  const specFrom = (before: V1LeaseSpec | undefined): V1LeaseSpec => {
    const now = new V1MicroTime();
    const isMine = before?.holderIdentity === identity;
    return {
      holderIdentity: identity,
      leaseDurationSeconds: Math.ceil(leaseDurationMs / 1000),
      acquireTime: (isMine ? before.acquireTime : undefined) ?? now,
      renewTime: now,
      leaseTransitions: (before?.leaseTransitions ?? 0) + (isMine || before === undefined ? 0 : 1),
    };
  };
  const isFree = ({ metadata, spec }: V1Lease): boolean => {
    const version = metadata?.resourceVersion ?? "";
    if (seen?.version !== version) seen = { version, atMs: performance.now() };
    const holder = spec?.holderIdentity ?? "";
    return holder === "" || holder === identity || performance.now() - seen.atMs > leaseDurationMs;
  };
  const attempt = async (): Promise<boolean> => {
    try {
      const current = await api.readNamespacedLease({ name, namespace }, within);
      if (!isFree(current)) return false;
      const body = { ...current, spec: specFrom(current.spec) };
      own = await api.replaceNamespacedLease({ name, namespace, body }, within);
      return true;
    } catch (error) {
      if ((error as { readonly code?: unknown }).code !== NOT_FOUND) throw error;
      const body = { metadata: { name, namespace }, spec: specFrom(undefined) };
      own = await api.createNamespacedLease({ namespace, body }, within);
      return true;
    }
  };
  const tryOnce = async (): Promise<boolean> => {
    try {
      return await attempt();
    } catch (error) {
      // Another process was faster.
      if ((error as { readonly code?: unknown }).code !== CONFLICT) log.error("acquiring the lease failed", error, { ...lease });
      return false;
    }
  };
  const pause = (signal: AbortSignal) =>
    delay(retryPeriodMs * (1 + Math.random() / 5), undefined, { signal }).catch(() => undefined);

  return {
    async acquire(signal) {
      while (!signal.aborted && !(await tryOnce())) await pause(signal);
    },
    async hold(signal) {
      let renewedAtMs = performance.now();
      while (!signal.aborted) {
        await pause(signal);
        if (signal.aborted) return;
        if (await tryOnce()) renewedAtMs = performance.now();
        else if (performance.now() - renewedAtMs > renewDeadlineMs) throw new Error(`the lease ${namespace}/${name} is lost`);
      }
    },
    async release() {
      if (own === undefined) return;
      const now = new V1MicroTime();
      const spec = { ...own.spec, holderIdentity: "", leaseDurationSeconds: 1, renewTime: now, acquireTime: now };
      await api.replaceNamespacedLease({ name, namespace, body: { ...own, spec } }, within);
      own = undefined;
    },
  };
}
