// One HTTP request of a webhook, from its headers to its answer: found by path, read within bounds, decoded, reviewed, encoded.
// Invariant: the API server always gets an answer that it can show. The answer to an AdmissionReview is an AdmissionReview. The
// answer to any other request is a Status, and its HTTP code says whether to try again. Called by webhook-server.ts.

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Clock } from "../../base/clock.ts";
import type { Logger } from "../../base/log.ts";
import { plainText } from "../../base/plain-text.ts";
import { MAX_REVIEW_BYTES } from "../../kube/admission-review.ts";
import { JSON_TYPE, mediaTypeOf } from "../../kube/media-types.ts";
import { StatusError } from "../../kube/status.ts";
import { type AdmissionAnswer, type AdmissionRequest, decodeReview, encodeReview } from "./admission-review.ts";
import type { WebhookRoutes } from "./webhook.ts";
import type { WebhookMetrics, WebhookResult } from "./webhook-metrics.ts";

export interface ServeOptions {
  readonly routes: WebhookRoutes;
  readonly budget: ByteBudget;
  readonly metrics: WebhookMetrics;
  readonly clock: Clock;
  readonly log: Logger;
  /** True: each answer closes its connection. */
  readonly isDraining: () => boolean;
}

/** Answers the request; never rejects. */
export async function serveReview(req: IncomingMessage, res: ServerResponse, options: ServeOptions): Promise<void> {
  const { routes, metrics, clock, log } = options;
  const startedMs = clock.monotonicMs();
  const webhook = routes((req.url ?? "").split("?")[0] ?? "");
  const end = (code: number, body: object, result: WebhookResult) => {
    // Close the connection of a client that is not the API server, and of a client whose body was not read to its end.
    if (options.isDraining() || result === "bad-request" || !req.complete) res.shouldKeepAlive = false;
    sendJson(res, code, body);
    metrics.answered(webhook?.name ?? "none", result, (clock.monotonicMs() - startedMs) / 1000);
  };
  try {
    if (webhook === undefined) throw new StatusError("NotFound", `ctrlmesh: there is no webhook at ${shown(req.url)}`);
    checkHeaders(req);
    const body = await readBody(req, MAX_REVIEW_BYTES, options.budget);
    try {
      const request = decodeReview(body.bytes);
      const answer = await webhook.review(request, signalOf(res));
      logRefusal(log, webhook.name, request, answer);
      end(200, encodeReview(request.uid, answer), resultOf(answer));
    } finally {
      body.release();
    }
  } catch (error) {
    const isKnown = error instanceof StatusError;
    if (!isKnown) log.error({ err: error, webhook: webhook?.name }, "a webhook failed");
    const { status } = isKnown
      ? error
      : new StatusError("InternalError", "ctrlmesh: the webhook failed; the manager's log says why");
    const { retryAfterSeconds } = status.details ?? {};
    if (retryAfterSeconds !== undefined && !res.headersSent) res.setHeader("retry-after", retryAfterSeconds);
    if (status.reason === "MethodNotAllowed") res.setHeader("allow", "POST");
    end(status.code, status, failureOf(status.code));
  }
}

function checkHeaders({ method, headers }: IncomingMessage): void {
  if (method !== "POST") throw new StatusError("MethodNotAllowed", `ctrlmesh: webhooks accept only POST, not ${method}`);
  const type = mediaTypeOf(headers["content-type"]);
  const encoding = headers["content-encoding"] ?? "identity";
  if (type === JSON_TYPE && encoding === "identity") return;
  throw new StatusError("UnsupportedMediaType", "ctrlmesh: a review must be application/json, without content-encoding");
}

const MAX_SHOWN = 100;

function shown(url = ""): string {
  return JSON.stringify(url.slice(0, MAX_SHOWN));
}

/** Fires if the client disconnects before the answer. */
function signalOf(res: ServerResponse): AbortSignal {
  const gone = new AbortController();
  res.once("close", () => gone.abort());
  return gone.signal;
}

function resultOf(answer: AdmissionAnswer): WebhookResult {
  if (!answer.allowed) return "refused";
  return (answer.patch ?? []).length > 0 ? "patched" : "allowed";
}

function failureOf(code: number): WebhookResult {
  if (code === 429 || code === 503) return "unavailable";
  return code < 500 ? "bad-request" : "failed";
}

/** Longest text from a request in a log line. Any client can reach the port, and the API server does not authenticate itself. */
const MAX_LOGGED = 1_000;

function logRefusal(log: Logger, webhook: string, { namespace, name, dryRun }: AdmissionRequest, answer: AdmissionAnswer): void {
  if (answer.allowed) return;
  const [where, what, reason] = [namespace, name, answer.message].map((text = "") => plainText(text, MAX_LOGGED));
  log.info({ webhook, namespace: where, name: what, dryRun, reason }, "admission refused");
}

function sendJson(res: ServerResponse, code: number, value: object): void {
  if (res.destroyed || res.headersSent) return;
  const body = JSON.stringify(value);
  res.writeHead(code, { "content-type": JSON_TYPE, "content-length": Buffer.byteLength(body) });
  res.end(body);
}

/** The bytes of bodies in memory at a time. They count when they arrive, so a slow client uses little of the budget. */
interface ByteBudget {
  /** False if there is no room. */
  take(bytes: number): boolean;
  give(bytes: number): void;
}

export function createByteBudget(maxBytes: number): ByteBudget {
  let left = maxBytes;
  return {
    take(bytes) {
      if (bytes > left) return false;
      left -= bytes;
      return true;
    },
    give(bytes) {
      left += bytes;
    },
  };
}

interface HeldBody {
  readonly bytes: Uint8Array;
  /** Returns the bytes to the budget. Call it once. */
  release(): void;
}

/**
 * Reads the body to its end.
 * @throws StatusError `RequestEntityTooLarge`, `TooManyRequests`, or `BadRequest` if the client disconnects
 */
async function readBody(req: IncomingMessage, maxBytes: number, budget: ByteBudget): Promise<HeldBody> {
  const tooLarge = () => new StatusError("RequestEntityTooLarge", `ctrlmesh: a review may have ${maxBytes} bytes at most`);
  if (Number(req.headers["content-length"] ?? 0) > maxBytes) throw tooLarge();
  const chunks: Buffer[] = [];
  let held = 0;
  try {
    for await (const chunk of req as AsyncIterable<Buffer>) {
      if (held + chunk.length > maxBytes) throw tooLarge();
      if (!budget.take(chunk.length)) throw busy();
      held += chunk.length;
      chunks.push(chunk);
    }
  } catch (error) {
    budget.give(held);
    if (error instanceof StatusError) throw error;
    throw new StatusError("BadRequest", "ctrlmesh: the body broke off", undefined, { cause: error });
  }
  return { bytes: Buffer.concat(chunks, held), release: () => budget.give(held) };
}

/** The API server tries again after this time, within its own timeout. */
const RETRY_AFTER_SECONDS = 1;

function busy(): StatusError {
  const details = { retryAfterSeconds: RETRY_AFTER_SECONDS };
  return new StatusError("TooManyRequests", "ctrlmesh: too many reviews at a time", details);
}
