// Asks the API server which pod a token is bound to (TokenReview). Invariants: verdicts are kept for seconds,
// under a token's hash, except for failed reviews; few reviews run at a time, and the addresses take turns.
import { createHash } from "node:crypto";
import { BoundedMap } from "../../base/bounded-map.ts";
import type { Clock } from "../../base/clock.ts";
import { errorMessage } from "../../base/errors.ts";
import { createFairGate } from "../../base/fair-gate.ts";
import type { KubeClient } from "../../kube/client/types.ts";
import type { PodRef } from "../../mesh/contract/messages.ts";
import type { Rejection } from "./rejections.ts";

export const TOKEN_AUDIENCE = "ctrlmesh";

/** As a token proves it. */
export type PodIdentity = PodRef;

export type TokenVerdict =
  | { readonly kind: "pod"; readonly pod: PodIdentity }
  /** There was no answer. */
  | { readonly kind: "wait"; readonly message: string }
  | { readonly kind: "refuse"; readonly reason: Rejection; readonly message: string };

export type TokenReviewer = ReturnType<typeof createTokenReviewer>;

interface TokenReviewerOptions {
  readonly client: Pick<KubeClient, "request">;
  readonly clock: Clock;
  /** How long a valid token is accepted without another review. The API server caches its answer as long. */
  readonly goodMs: number;
}

/** Clocks differ, so the API server decides about a token that has just expired. */
const SKEW_MS = 300_000;
const BAD_MS = 2_000;
const MAX_KNOWN = 4_096;
// Enough to review a thousand proxies that reconnect together within a few seconds.
const CONCURRENCY = 16;
const MAX_WAITING = 4_096;
const TIMEOUT_MS = 5_000;
// Tokens of kube-apiserver are about 1 KB.
const MAX_TOKEN_LENGTH = 16_384;
const TOKEN = /^[\w-]+\.[\w-]+\.[\w-]+$/;
const USER = /^system:serviceaccount:([^:]+):[^:]+$/;

export function createTokenReviewer({ client, clock, goodMs }: TokenReviewerOptions) {
  const entries = new BoundedMap<string, { readonly verdict: Promise<TokenVerdict>; untilMs: number }>(MAX_KNOWN);
  const gate = createFairGate(CONCURRENCY, MAX_WAITING);

  async function ask(token: string, address: string): Promise<TokenVerdict> {
    try {
      return await gate(address, async () => verdictOn(await reviewOf(client, token)));
    } catch (error) {
      return { kind: "wait", message: `the token cannot be verified now: ${errorMessage(error)}` };
    }
  }

  return {
    /** Never throws. @param address of the caller; the addresses take turns */
    review(token: string, address: string): Promise<TokenVerdict> {
      if (token.length > MAX_TOKEN_LENGTH || !TOKEN.test(token)) {
        return Promise.resolve(refuse("bad-token", "the token is no service account token"));
      }
      const hopeless = whyHopeless(token, clock.now());
      if (hopeless !== undefined) return Promise.resolve(refuse("bad-token", hopeless));
      const nowMs = clock.monotonicMs();
      const key = createHash("sha256").update(token).digest("base64");
      const knownEntry = entries.get(key);
      if (knownEntry !== undefined && knownEntry.untilMs > nowMs) return knownEntry.verdict;
      const entry = { verdict: ask(token, address), untilMs: Number.POSITIVE_INFINITY };
      entries.set(key, entry);
      void entry.verdict.then(({ kind }) => {
        entry.untilMs = clock.monotonicMs() + (kind === "pod" ? goodMs : BAD_MS);
        if (kind === "wait" && entries.get(key) === entry) entries.delete(key);
      });
      return entry.verdict;
    },
  };
}

/** authentication.k8s.io/v1 TokenReviewStatus. */
interface ReviewStatus {
  readonly authenticated?: boolean;
  readonly audiences?: readonly string[];
  readonly error?: string;
  readonly user?: { readonly username?: string; readonly extra?: Readonly<Record<string, readonly string[]>> };
}

async function reviewOf(client: Pick<KubeClient, "request">, token: string): Promise<ReviewStatus> {
  const spec = { token, audiences: [TOKEN_AUDIENCE] };
  const answer = await client.request({
    method: "POST",
    path: "/apis/authentication.k8s.io/v1/tokenreviews",
    body: { apiVersion: "authentication.k8s.io/v1", kind: "TokenReview", metadata: {}, spec },
    doing: "reviewing a token",
    timeoutMs: TIMEOUT_MS,
    maxRetries: 0,
  });
  return (answer as { readonly status?: ReviewStatus } | undefined)?.status ?? {};
}

function verdictOn({ authenticated, audiences = [], user, error = "" }: ReviewStatus): TokenVerdict {
  // A server that does not know audiences names none, and accepts any token.
  if (authenticated !== true || !audiences.includes(TOKEN_AUDIENCE)) {
    const why = error === "" ? "" : `: ${error.slice(0, 300)}`;
    return refuse("bad-token", `the token is not valid for the audience ${TOKEN_AUDIENCE}${why}`);
  }
  const namespace = USER.exec(user?.username ?? "")?.[1];
  const [name] = user?.extra?.["authentication.kubernetes.io/pod-name"] ?? [];
  const [uid] = user?.extra?.["authentication.kubernetes.io/pod-uid"] ?? [];
  if (namespace === undefined || !name || !uid) return refuse("not-bound", "the token is not bound to a pod");
  return { kind: "pod", pod: { namespace, name, uid } };
}

export function refuse(reason: Rejection, message: string): Extract<TokenVerdict, { kind: "refuse" }> {
  return { kind: "refuse", reason, message };
}

/** Why a token cannot be valid, if its unverified claims show that. They are used for nothing else. */
function whyHopeless(token: string, nowMs: number): string | undefined {
  const { aud, exp } = claimsOf(token);
  if (aud !== TOKEN_AUDIENCE && !(Array.isArray(aud) && aud.includes(TOKEN_AUDIENCE)))
    return `the token is not valid for the audience ${TOKEN_AUDIENCE}`;
  if (typeof exp !== "number" || exp * 1_000 + SKEW_MS < nowMs) return "the token is expired";
  return undefined;
}

function claimsOf(token: string): { readonly aud?: unknown; readonly exp?: unknown } {
  try {
    return Object(JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString()));
  } catch {
    return {};
  }
}
