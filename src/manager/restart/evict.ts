// One call of the eviction API (policy/v1), which respects PodDisruptionBudgets. Invariant: it evicts only
// the pod with this uid, never another pod of the same name.
import { errorMessage } from "../../base/errors.ts";
import { plainText } from "../../base/plain-text.ts";
import { PODS } from "../../kube/client/resources.ts";
import { retryAfterMs } from "../../kube/client/response-error.ts";
import type { KubeClient } from "../../kube/client/types.ts";
import { StatusError } from "../../kube/status.ts";

export type Eviction =
  /** The pod is ending. */
  | { readonly kind: "accepted" }
  | { readonly kind: "gone" }
  /** No answer came: the pod may be ending. */
  | { readonly kind: "unknown"; readonly message: string }
  | RefusedEviction;

export interface RefusedEviction {
  readonly kind: "refused";
  readonly reason: "PodDisruptionBudget" | "EvictionForbidden" | "EvictionFailed";
  readonly message: string;
  readonly retryAfterMs: number | undefined;
}

const TIMEOUT_MS = 5_000;

/** Evicts the pod, and returns the answer. @throws only the signal's reason, if it fires */
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
