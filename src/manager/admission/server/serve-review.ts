// One HTTP request of a webhook: found by path, read within bounds, decoded, reviewed, encoded. Invariant:
// the API server always gets an answer that it can show: an AdmissionReview to an AdmissionReview, and a
// Status to any other request, whose code says whether to try again.
import type { IncomingMessage, ServerResponse } from "node:http";
import type { ClientPace } from "../../../base/client-pace.ts";
import { clientAddress } from "../../../base/connection-places.ts";
import type { Logger } from "../../../base/log.ts";
import { Counter, Histogram, type Registry } from "../../../base/metrics.ts";
import { plainText } from "../../../base/plain-text.ts";
import type { ProcessContext } from "../../../base/process-context.ts";
import { JSON_TYPE, mediaTypeOf } from "../../../kube/media-types.ts";
import { StatusError } from "../../../kube/status.ts";
import { type AdmissionAnswer, type AdmissionRequest, encodeReview } from "./admission-review.ts";
import { type ReviewMeans, readReviewRequest } from "./read-review-request.ts";
import type { Caller, WebhookName, WebhookRoutes } from "./webhook.ts";

export interface ServeOptions extends ReviewMeans, Pick<ProcessContext, "clock" | "log"> {
  readonly routes: WebhookRoutes;
  readonly metrics: WebhookMetrics;
  /** The time for a client to read an answer. */
  readonly answerMs: number;
  /** Bounds the refusals and failures of a client that are logged. All are counted. */
  readonly refusals: Pick<ClientPace, "allow">;
  /** True: each answer closes its connection. */
  readonly isDraining: () => boolean;
}

/** Answers the request; never rejects. */
export async function serveReview(req: IncomingMessage, res: ServerResponse, options: ServeOptions): Promise<void> {
  const { routes, metrics, clock, log } = options;
  const startedMs = clock.monotonicMs();
  const webhook = routes((req.url ?? "").split("?")[0] ?? "");
  const end = (code: number, body: string, result: WebhookResult) => {
    // The connection is closed if the client is no API server, or if its body was not read to the end.
    if (options.isDraining() || result === "bad-request" || !req.complete) res.shouldKeepAlive = false;
    sendJson(res, code, body);
    metrics.answered(webhook?.name ?? "none", result, (clock.monotonicMs() - startedMs) / 1000);
  };
  try {
    if (webhook === undefined) throw new StatusError("NotFound", `ctrlmesh: there is no webhook at ${shortUrl(req.url)}`);
    checkHeaders(req);
    const caller = callerOf(req, res);
    const { address } = caller;
    // The wait comes before the body is read, so that a waiting request has no body in memory.
    await webhook.ready?.(caller);
    const { request, charge, release } = await readReviewRequest(req, address, options);
    try {
      const answer = await options.turns.goOn(address, () => webhook.review(request, caller));
      if (!answer.allowed && options.refusals.allow(address, 1)) logRefusal(log, webhook.name, request, answer.message);
      const body = JSON.stringify(encodeReview(request.uid, answer));
      charge(body.length * BYTES_PER_CHAR);
      end(200, body, resultOf(answer));
      await untilSent(res, options);
    } finally {
      release();
    }
  } catch (error) {
    const isKnown = error instanceof StatusError;
    if (!isKnown && options.refusals.allow(clientAddress(req.socket) ?? "", 1))
      log.error({ err: error, webhook: webhook?.name }, "a webhook failed");
    const { status } = isKnown
      ? error
      : new StatusError("InternalError", "ctrlmesh: the webhook failed; the manager's log says why");
    const { retryAfterSeconds } = status.details ?? {};
    if (retryAfterSeconds !== undefined && !res.headersSent) res.setHeader("retry-after", retryAfterSeconds);
    if (status.reason === "MethodNotAllowed") res.setHeader("allow", "POST");
    end(status.code, JSON.stringify(status), failureOf(status.code));
    await untilSent(res, options);
  }
}

// An answer that was not read takes several times its length in memory. So a review keeps its part of the
// budget until the answer has left, or until the connection is closed after answerMs.
async function untilSent(res: ServerResponse, { clock, answerMs }: ServeOptions): Promise<void> {
  if (res.closed || res.destroyed) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = clock.after(answerMs, () => res.destroy());
  res.once("close", resolve);
  await promise;
  timer.cancel();
}

function checkHeaders({ method, headers }: IncomingMessage): void {
  if (method !== "POST") throw new StatusError("MethodNotAllowed", `ctrlmesh: webhooks accept only POST, not ${method}`);
  const type = mediaTypeOf(headers["content-type"]);
  const encoding = headers["content-encoding"] ?? "identity";
  if (type === JSON_TYPE && encoding === "identity") return;
  throw new StatusError("UnsupportedMediaType", "ctrlmesh: a review must be application/json, without content-encoding");
}

const MAX_SHOWN = 100;

function shortUrl(url = ""): string {
  return JSON.stringify(url.slice(0, MAX_SHOWN));
}

/** The signal fires if the client disconnects before the answer. */
function callerOf({ socket }: IncomingMessage, res: ServerResponse): Caller {
  const disconnection = new AbortController();
  res.once("close", () => disconnection.abort());
  return { address: clientAddress(socket) ?? "", signal: disconnection.signal };
}

function resultOf(answer: AdmissionAnswer): WebhookResult {
  if (!answer.allowed) return "refused";
  return (answer.patch ?? []).length > 0 ? "patched" : "allowed";
}

function failureOf(code: number): WebhookResult {
  if (code === 429 || code === 503) return "unavailable";
  return code < 500 ? "bad-request" : "failed";
}

/** Bounds the texts of a request in a log line, since any client can reach the port. */
const MAX_LOGGED = 1_000;

function logRefusal(log: Logger, webhook: string, { namespace, name, dryRun }: AdmissionRequest, message: string): void {
  const [where, objectName, reason] = [namespace, name, message].map((text = "") => plainText(text, MAX_LOGGED));
  log.info({ webhook, namespace: where, objectName, dryRun, reason }, "admission refused");
}

/** The answer is in memory as text, as bytes, and encrypted. */
const BYTES_PER_CHAR = 3;

function sendJson(res: ServerResponse, code: number, body: string): void {
  if (res.destroyed || res.headersSent) return;
  res.writeHead(code, { "content-type": JSON_TYPE, "content-length": Buffer.byteLength(body) });
  res.end(body);
}

/** Malformed requests are `bad-request`; `unavailable`: no answer is possible now; `failed`: a bug. */
const WEBHOOK_RESULTS = ["allowed", "patched", "refused", "bad-request", "unavailable", "failed"] as const;

type WebhookResult = (typeof WEBHOOK_RESULTS)[number];

export type WebhookMetrics = ReturnType<typeof createWebhookMetrics>;

const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

export function createWebhookMetrics(registry: Registry) {
  const registers = [registry];
  const requests = new Counter({
    name: "ctrlmesh_manager_webhook_requests_total",
    help: "Requests to the admission webhooks, by webhook and result.",
    labelNames: ["webhook", "result"],
    registers,
  });
  for (const webhook of ["inject", "validate"]) for (const result of WEBHOOK_RESULTS) requests.inc({ webhook, result }, 0);
  const seconds = new Histogram({
    name: "ctrlmesh_manager_webhook_duration_seconds",
    help: "Time from a request's headers to its answer.",
    labelNames: ["webhook"],
    buckets: BUCKETS,
    registers,
  });
  const handshakes = new Counter({
    name: "ctrlmesh_manager_webhook_handshake_failures_total",
    help: "TLS handshakes of the webhooks that failed: the client does not trust the mesh's CA, or speaks no TLS.",
    registers,
  });
  return {
    answered(webhook: WebhookName | "none", result: WebhookResult, duration: number) {
      requests.inc({ webhook, result });
      seconds.observe({ webhook }, duration);
    },
    handshakeFailed: () => handshakes.inc(),
  };
}
