// Kubernetes Events about objects, for users of kubectl. Invariant: recording never waits and never throws,
// and memory is bounded. An equal event raises the count of the first Event, at most every ten seconds. An
// Event that cannot be written is dropped, because the status has the same information.
import { untilAborted } from "../base/abort.ts";
import { BoundedMap } from "../base/bounded-map.ts";
import type { Timer } from "../base/clock.ts";
import { MeshError } from "../base/errors.ts";
import type { Runnable } from "../base/lifecycle.ts";
import { plainText } from "../base/plain-text.ts";
import type { ProcessContext } from "../base/process-context.ts";
import { EVENTS, type ObjectReference } from "../kube/client/resources.ts";
import type { KubeClient } from "../kube/client/types.ts";
import { isStatus } from "../kube/status.ts";
import type { KubeObject } from "../kube/types.ts";

export type EventType = "Normal" | "Warning";

export interface EventRecorder extends Runnable {
  /**
   * @param reason one stable word in CamelCase
   * @param message a sentence; Events with equal messages are counted together
   */
  event(object: KubeObject, type: EventType, reason: string, message: string): void;
}

interface EventRecorderOptions extends Pick<ProcessContext, "clock" | "random" | "log"> {
  readonly client: Pick<KubeClient, "create" | "patch">;
  /** The reporting program, for example "ctrlmesh-manager". */
  readonly component: string;
  /** The name of the program's pod. */
  readonly instance?: string;
}

interface Pending {
  readonly reference: ObjectReference;
  readonly type: EventType;
  readonly reason: string;
  readonly message: string;
  readonly firstMs: number;
  readonly dueMs: number;
  lastMs: number;
  count: number;
}

interface Written {
  readonly namespace: string;
  readonly name: string;
  readonly count: number;
  readonly atMs: number;
}

const MAX_PENDING = 256;
const MAX_WRITTEN = 1024;
const REPEAT_MS = 10_000;
const WRITE_TIMEOUT_MS = 5_000;
const FLUSH_TIMEOUT_MS = 2_000;
const MAX_MESSAGE_LENGTH = 1024; // the bound of kube-apiserver

/** `stop` writes the pending Events, for at most two seconds. */
export function createEventRecorder(options: EventRecorderOptions): EventRecorder {
  const { client, component, instance = "", clock, random, log } = options;
  const pending = new Map<string, Pending>();
  const written = new BoundedMap<string, Written>(MAX_WRITTEN);
  const stopping = new AbortController();
  let timer: Timer | undefined;
  let flushing: Promise<void> | undefined;
  let dropped = 0;

  function event(object: KubeObject, type: EventType, reason: string, message: string): void {
    const reference = referenceOf(object);
    const key = JSON.stringify([reference.uid, reference.kind, reference.namespace, reference.name, type, reason, message]);
    const nowMs = clock.now();
    const waiting = pending.get(key);
    if (waiting !== undefined) {
      waiting.count++;
      waiting.lastMs = nowMs;
    } else if (pending.size >= MAX_PENDING || stopping.signal.aborted) {
      if (dropped++ === 0) log.warn({ reason }, "too many events: some are dropped");
    } else {
      const dueMs = Math.max(clock.monotonicMs(), (written.get(key)?.atMs ?? -REPEAT_MS) + REPEAT_MS);
      pending.set(key, {
        reference,
        type,
        reason,
        message: plainText(message, MAX_MESSAGE_LENGTH),
        firstMs: nowMs,
        dueMs,
        lastMs: nowMs,
        count: 1,
      });
      schedule();
    }
  }

  function schedule(): void {
    if (flushing !== undefined || pending.size === 0 || stopping.signal.aborted) return;
    timer?.cancel();
    const dueMs = Math.min(...[...pending.values()].map((entry) => entry.dueMs));
    timer = clock.after(Math.max(0, dueMs - clock.monotonicMs()), () => {
      flushing = flush(clock.monotonicMs(), undefined).finally(() => {
        flushing = undefined;
        schedule();
      });
    });
  }

  async function flush(untilMs: number, signal: AbortSignal | undefined): Promise<void> {
    for (const [key, entry] of pending) {
      if (entry.dueMs > untilMs || signal?.aborted) continue;
      pending.delete(key);
      try {
        written.set(key, await write(entry, written.get(key), signal));
      } catch (error) {
        log.warn({ err: error, reason: entry.reason }, "event not written");
      }
    }
    if (pending.size === 0) dropped = 0;
  }

  async function write(entry: Pending, before: Written | undefined, signal: AbortSignal | undefined): Promise<Written> {
    const call = { timeoutMs: WRITE_TIMEOUT_MS, signal };
    if (before !== undefined) {
      const count = before.count + entry.count;
      const body = { count, lastTimestamp: formatTime(entry.lastMs), message: entry.message };
      try {
        await client.patch(EVENTS, before, { type: "merge", body }, call);
        return { ...before, count, atMs: clock.monotonicMs() };
      } catch (error) {
        if (!isStatus(error, "NotFound")) throw error; // the API server deletes Events after an hour; a new one follows
      }
    }
    const object = newEvent(entry);
    await client.create(EVENTS, object, call);
    return { ...object.metadata, count: entry.count, atMs: clock.monotonicMs() };
  }

  function newEvent({ reference, type, reason, message, firstMs, lastMs, count }: Pending) {
    const suffix = `${clock.now().toString(16)}${Math.floor(random() * 2 ** 32).toString(16)}`;
    return {
      // kubectl reads the Events about cluster-scoped objects in the namespace "default".
      metadata: { namespace: reference.namespace ?? "default", name: `${(reference.name ?? "").slice(0, 220)}.${suffix}` },
      involvedObject: reference,
      type,
      reason,
      message,
      count,
      firstTimestamp: formatTime(firstMs),
      lastTimestamp: formatTime(lastMs),
      source: { component },
      reportingComponent: component,
      reportingInstance: instance,
    };
  }

  return {
    name: "event recorder",
    event,
    async start() {},
    async stop() {
      stopping.abort();
      timer?.cancel();
      const limit = new AbortController();
      const bound = clock.after(FLUSH_TIMEOUT_MS, () => limit.abort(new MeshError("ABORTED", "writing events: out of time")));
      await Promise.race([flushing, untilAborted(limit.signal)]);
      await flush(Number.POSITIVE_INFINITY, limit.signal);
      bound.cancel();
    },
  };
}

function referenceOf({ apiVersion, kind, metadata }: KubeObject): ObjectReference {
  const { namespace, name, uid, resourceVersion } = metadata;
  return Object.fromEntries(
    Object.entries({ apiVersion, kind, namespace, name, uid, resourceVersion }).filter(([, value]) => value !== undefined),
  );
}

function formatTime(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+Z$/, "Z");
}
