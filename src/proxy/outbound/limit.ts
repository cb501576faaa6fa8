// Asks the limits and breakers of policies, as the last layer that decides: a request that another layer
// refuses or answers costs no token. Invariant: a client's call is charged once, whatever the proxy sends for
// it, and settled once by its outcome as a whole (the layer `settle`).
import { onAbort } from "../../base/abort.ts";
import type { Clock, Random } from "../../base/clock.ts";
import { MeshError } from "../../base/errors.ts";
import { isListOrWatch, isLongRunning, isWatch } from "../../kube/request-kind.ts";
import { createStatus } from "../../kube/status.ts";
import type { RefusedBy } from "../../policy/engine/decision.ts";
import type { Permit } from "../../policy/engine/permit.ts";
import type { Outcome } from "../../policy/limiters/limiter.ts";
import { ruleName } from "../../policy/policy.ts";
import { type Call, clientsRecord, type Layer } from "../call/call.ts";
import { countedSource } from "../http/body-sources.ts";
import { discardBody } from "../http/byte-stream.ts";
import type { Reply } from "../http/handler.ts";
import type { Policies } from "../policies/policies.ts";
import { PolicyError, refusalText, retryAfterOf, waitSeconds } from "../policies/policy-refusal.ts";
import type { Session } from "../session/session.ts";
import { policedRequest } from "./policed-request.ts";

export interface LimitDeps {
  readonly session: Pick<Session, "current">;
  readonly policies: Pick<Policies, "hasLimits" | "limit">;
  readonly random: Random;
}

export function limit({ session, policies, random }: LimitDeps): Layer {
  return (next) => async (call) => {
    if (isServing(call)) return next(call);
    const own = clientsRecord(call.record);
    if (!policies.hasLimits) {
      own.isAdmitted = true;
      return next(call);
    }
    const decision = policies.limit(policedRequest(call, session));
    if (decision.kind === "refused") {
      discardBody(call.body);
      throw limitRefusal(call, decision, random);
    }
    own.isAdmitted = true;
    // Nobody settles a request that is sent after the answer.
    if (own.isAnswered) decision.permit.release();
    else own.charge = decision.permit;
    return next(call);
  };
}

/**
 * True for what the proxy sends to serve a call that has passed (another list by namespace), and for
 * questions of another kind (the object before a write). A list that begins a watch counts as the watch.
 */
function isServing({ info, record }: Call): boolean {
  const own = clientsRecord(record);
  if (own.isAdmitted) return true;
  if (info.kind !== "resource" || own.info?.kind !== "resource") return false;
  return info.verb !== own.info.verb && !(isListOrWatch(info) && isListOrWatch(own.info));
}

/**
 * The answers that Kubernetes' clients handle best. They repeat a limited request after Retry-After. While a
 * breaker is open, only the body names the wait, since a header would stop all workers for that time. A watch
 * gets a 429, since a reflector lists again after a 503. A recorder sleeps for Retry-After, and drops an
 * Event without it.
 */
export function limitRefusal({ info: sent, record }: Call, refused: RefusedBy, random: Random): PolicyError {
  const { info = sent } = clientsRecord(record);
  const {
    rule: { origin },
    refusal: { kind },
  } = refused;
  record.decision = "refused";
  record.reason = kind;
  record.rule = ruleName(origin);
  const seconds = waitSeconds(refused);
  const message = `ctrlmesh: ${refusalText(refused)}`;
  const code = kind === "limited" ? "LIMITED" : "BREAKER_OPEN";
  const causes = [{ reason: kind === "limited" ? "Limited" : "BreakerOpen", message: origin.rule }];
  if (kind === "limited" || isWatch(info)) {
    const wait = isEventWrite(info) ? undefined : retryAfterOf(refused, random);
    const details = { causes, ...(wait === undefined ? {} : { retryAfterSeconds: wait }) };
    return new PolicyError(code, createStatus("TooManyRequests", message, details), wait);
  }
  const details = { causes, ...(seconds === undefined ? {} : { retryAfterSeconds: seconds }) };
  return new PolicyError(code, createStatus("ServiceUnavailable", message, details));
}

const EVENT_WRITES: ReadonlySet<string> = new Set(["create", "patch", "update"]);

/** Recorders patch an Event that they repeat. */
function isEventWrite(info: Call["info"]): boolean {
  return info.kind === "resource" && info.resource === "events" && EVENT_WRITES.has(info.verb);
}

export function settle({ clock }: { readonly clock: Clock }): Layer {
  return (next) => async (call) => {
    const { record } = call;
    let reply: Reply;
    try {
      reply = await next(call);
    } catch (error) {
      const left: Outcome = { kind: "abandoned", afterMs: record.slowestMs ?? 0 };
      record.charge?.settle(isUpstreamFailure(error) ? { kind: "failed" } : left);
      record.charge?.release();
      throw error;
    } finally {
      record.isAnswered = true;
    }
    const { charge: permit } = record;
    if (permit === undefined) return reply;
    if (reply.tunnel !== undefined) return settledInTunnel(call, reply, permit, clock);
    const { status } = reply;
    permit.settle({ kind: "answered", status, tookMs: record.slowestMs ?? 0, isByDesign: isBudgetRefusal(call, status) });
    const { body } = reply;
    if (body !== null && !(body instanceof Uint8Array) && !isLongRunning(call.info))
      return { ...reply, body: countedSource(body, permit.release) };
    permit.release();
    return reply;
  };
}

/** An upgrade is settled by what the API server answers, of which nobody knows before the sockets are connected. */
function settledInTunnel({ record, signal }: Call, reply: Reply, permit: Permit, clock: Clock): Reply {
  const startedMs = clock.monotonicMs();
  const settled = (outcome: Outcome) => {
    permit.settle(outcome);
    permit.release();
  };
  const waitedMs = () => clock.monotonicMs() - startedMs;
  record.upgraded = (status) =>
    settled(status === undefined ? { kind: "failed" } : { kind: "answered", status, tookMs: waitedMs() });
  // The server fires the signal of every upgraded call in the end.
  onAbort(signal, () => settled({ kind: "abandoned", afterMs: waitedMs() }));
  return reply;
}

/** The API server answers 429 as well if a PodDisruptionBudget forbids an eviction. */
function isBudgetRefusal({ info }: Call, status: number): boolean {
  return status === 429 && info.kind === "resource" && info.resource === "pods" && info.subresource === "eviction";
}

/** False if the client left or its body broke off. */
function isUpstreamFailure(error: unknown): boolean {
  return error instanceof MeshError && error.code.startsWith("UPSTREAM_");
}
