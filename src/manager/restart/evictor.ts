// Evicts the pods of apps, for restarts and for rollouts, and remembers the last answer for each. Invariants:
// only the leader evicts, and only the pod with this uid; PodDisruptionBudgets are respected. A new leader
// has no answers and evicts the pod again, which is harmless.
import type { ShardingStatus } from "../../api/sharding-config.ts";
import { backoffMs, type Clock, type Random, systemRandom } from "../../base/clock.ts";
import { errorMessage } from "../../base/errors.ts";
import type { Logger } from "../../base/log.ts";
import { plainText } from "../../base/plain-text.ts";
import { controllerRefOf } from "../../kube/client/owner.ts";
import { PODS } from "../../kube/client/resources.ts";
import { retryAfterMs } from "../../kube/client/response-error.ts";
import type { KubeClient } from "../../kube/client/types.ts";
import { StatusError } from "../../kube/status.ts";
import type { KubeObject } from "../../kube/types.ts";
import type { EventRecorder } from "../../runtime/events.ts";
import { formatRequest, type Request } from "../../runtime/reconciler.ts";
import type { PodLists } from "../facts/pod-watch.ts";

/** The API server has refused an eviction, or has not answered. */
export interface Refusal {
  readonly reason: RefusedEviction["reason"];
  readonly message: string;
  /** When to request the eviction again: wall time in milliseconds. */
  readonly retryAtMs: number;
}

/**
 * The part of the manager that evicts a pod. Each part remembers its own answer, since their pods may differ.
 */
type EvictedBy = "restart" | "rollout";

interface Attempt {
  readonly uid: string;
  /** The pod at the time of the attempt, if it was known. Its owner reference names the workload. */
  readonly object: KubeObject | undefined;
  /** The wall time until which the pod counts as terminating; 0 if it does not. */
  readonly endsUntilMs: number;
  readonly refusal: Refusal | undefined;
  readonly refusals: number;
}

interface EvictionRequest {
  readonly app: Request;
  readonly by: EvictedBy;
  /** The object of the app, for Events. */
  readonly source: KubeObject;
  readonly pod: { readonly name: string; readonly uid: string };
  /** The end of "ctrlmesh evicts pod NAME: ..."; absent: no Event about the pod. */
  readonly why?: string;
}

export type Evictor = ReturnType<typeof createEvictor>;

export interface EvictorOptions {
  readonly client: Pick<KubeClient, "createSubresource">;
  readonly pods: Pick<PodLists, "get">;
  readonly events: Pick<EventRecorder, "event">;
  /** Default: this replica leads. */
  readonly isLeader?: () => boolean;
  readonly clock: Pick<Clock, "now">;
  readonly random?: Random;
  readonly log: Logger;
}

/** If the watch does not show within this time that an evicted pod terminates, it is evicted again. */
export const BELIEVED_MS = 10_000;

const RETRY = { baseMs: 1_000, maxMs: 15_000 };
const DOUBTED_MS = 5_000;

export function createEvictor(options: EvictorOptions) {
  const { client, pods, events, isLeader = () => true, clock, random = systemRandom, log } = options;
  const attemptsBy = { restart: new Map<string, Attempt>(), rollout: new Map<string, Attempt>() };

  function refusalBy(eviction: Eviction, refusals: number): Refusal | undefined {
    if (eviction.kind === "accepted" || eviction.kind === "gone") return undefined;
    const isUnknown = eviction.kind === "unknown";
    const leastMs = isUnknown ? DOUBTED_MS : (eviction.retryAfterMs ?? 0);
    const retryAtMs = clock.now() + Math.max(leastMs, backoffMs(refusals, RETRY, random));
    return { reason: isUnknown ? "EvictionFailed" : eviction.reason, message: eviction.message, retryAtMs };
  }

  function attemptOn(app: Request, uid: string, by: EvictedBy): Attempt | undefined {
    const last = attemptsBy[by].get(formatRequest(app));
    return last?.uid === uid ? last : undefined;
  }

  return {
    /** The part's last attempt, if it was for the pod with this uid. */
    attemptOn,
    /** Undefined if this replica no longer leads. @throws the signal's reason if it fires */
    async evict(
      { app, by, source, pod: { name, uid }, why }: EvictionRequest,
      signal: AbortSignal,
    ): Promise<Attempt | undefined> {
      // The process may have been stopped since the record was written, and may have lost the lease.
      if (!isLeader()) return undefined;
      const attempts = attemptsBy[by];
      const key = formatRequest(app);
      const before = attemptOn(app, uid, by);
      const { refusal: refusalBefore, refusals = 0 } = before ?? {};
      const object = pods.get(name, app.namespace) ?? before?.object;
      const asked = { uid, object, refusals, refusal: refusalBefore, endsUntilMs: clock.now() + BELIEVED_MS };
      attempts.set(key, asked);
      const eviction = await evict(client, { namespace: app.namespace, name, uid }, signal);
      const refusal = refusalBy(eviction, refusals);
      const answered: Attempt = {
        ...asked,
        refusal,
        refusals: refusal === undefined ? refusals : refusals + 1,
        endsUntilMs: endsUntil(eviction, refusal),
      };
      if (attempts.get(key) === asked) attempts.set(key, answered);
      if (refusal === undefined) {
        log.info({ app: key, by, pod: name, eviction: eviction.kind }, "pod evicted");
        if (why !== undefined && object !== undefined && eviction.kind === "accepted")
          recordEviction(events, source, object, why);
      } else if (refusalBefore?.reason !== refusal.reason) {
        log.warn({ app: key, by, pod: name, reason: refusal.reason, message: refusal.message }, "eviction refused");
      }
      return answered;
    },
    forget(app: Request): void {
      for (const attempts of Object.values(attemptsBy)) attempts.delete(formatRequest(app));
    },
  };

  function endsUntil({ kind }: Eviction, refusal: Refusal | undefined): number {
    if (refusal === undefined) return clock.now() + BELIEVED_MS;
    return kind === "unknown" ? refusal.retryAtMs : 0;
  }
}

/** True if this part evicts a pod, by the stored status. The other part then waits. */
export function isEvicting(status: ShardingStatus | undefined, by: EvictedBy): boolean {
  return (by === "restart" ? status?.restart?.reason : status?.rollout?.waitingFor) === "Evicting";
}

const MAX_NAME = 253;

/** Sends an Event on the pod and on its workload, where people look first when pods restart. */
function recordEviction(events: Pick<EventRecorder, "event">, app: KubeObject, pod: KubeObject, why: string): void {
  const { namespace, name = "" } = pod.metadata;
  const source = `${app.kind ?? "app"} ${plainText(app.metadata.name ?? "", MAX_NAME)}`;
  const message = `ctrlmesh evicts pod ${plainText(name, MAX_NAME)}: ${why} (${source})`;
  events.event({ ...pod, apiVersion: "v1", kind: "Pod" }, "Normal", "EvictedPod", message);
  const owner = controllerRefOf(pod);
  if (owner === undefined) return;
  const { apiVersion, kind, uid } = owner;
  const metadata = { name: owner.name, uid, ...(namespace === undefined ? {} : { namespace }) };
  events.event({ apiVersion, kind, metadata }, "Normal", "EvictedPod", message);
}

type Eviction =
  | { readonly kind: "accepted" }
  | { readonly kind: "gone" }
  /** No answer came: the pod may be ending. */
  | { readonly kind: "unknown"; readonly message: string }
  | RefusedEviction;

interface RefusedEviction {
  readonly kind: "refused";
  readonly reason: "PodDisruptionBudget" | "EvictionForbidden" | "EvictionFailed";
  readonly message: string;
  readonly retryAfterMs: number | undefined;
}

const TIMEOUT_MS = 5_000;

/** @throws only the signal's reason, if it fires */
export async function evict(
  client: Pick<KubeClient, "createSubresource">,
  { namespace, name, uid }: { readonly namespace: string; readonly name: string; readonly uid: string },
  signal: AbortSignal,
): Promise<Eviction> {
  const body = {
    apiVersion: "policy/v1",
    kind: "Eviction",
    metadata: { namespace, name },
    deleteOptions: { preconditions: { uid } },
  };
  try {
    // No retry here: a budget may refuse for hours, and the status has to report the refusal immediately.
    await client.createSubresource(PODS, { namespace, name }, "eviction", body, { signal, timeoutMs: TIMEOUT_MS, maxRetries: 0 });
    return { kind: "accepted" };
  } catch (error) {
    signal.throwIfAborted();
    return evictionOf(error, namespace, name);
  }
}

function evictionOf(error: unknown, namespace: string, name: string): Eviction {
  const unknown = (why: string) =>
    ({ kind: "unknown", message: `it is not known whether pod ${name} is evicted: ${why}` }) as const;
  if (!(error instanceof StatusError)) return unknown(plainText(errorMessage(error)));
  const { code, details } = error.status;
  const message = plainText(error.status.message + budgetsText(error));
  switch (code) {
    case 404:
      if (details?.kind === PODS.resource) return { kind: "gone" };
      return refused("EvictionFailed", `pod ${name} cannot be evicted: the API server knows no eviction: ${message}`);
    case 409: // the precondition: another pod has the name now
      return { kind: "gone" };
    case 504:
      return unknown(message);
    case 429:
      return refused("PodDisruptionBudget", `pod ${name} may not be evicted now: ${message}`, retryAfterMs(error));
    case 403:
      return refused(
        "EvictionForbidden",
        `pod ${name} cannot be restarted: the manager may not evict pods: allow it to create pods/eviction in namespace ${namespace} (${message})`,
      );
    default:
      return refused("EvictionFailed", `pod ${name} cannot be evicted: ${message}`);
  }
}

// Such as "The disruption budget shop needs 2 healthy pods and has 2 currently".
function budgetsText({ status }: StatusError): string {
  const causes = (status.details?.causes ?? []).flatMap(({ message }) => (message === undefined ? [] : [message]));
  return causes.length === 0 ? "" : ` (${causes.join("; ")})`;
}

function refused(reason: RefusedEviction["reason"], message: string, retryMs?: number): RefusedEviction {
  return { kind: "refused", reason, message, retryAfterMs: retryMs };
}
