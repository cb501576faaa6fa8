// Asks the limits and breakers of policies, as the last layer that decides: a request that another layer
// refuses or answers costs no token. Invariant: a client's call is charged once, whatever the proxy sends for
// it, and settled once by its outcome as a whole (the layer `settle`).
import type { Clock, Random } from "../../base/clock.ts";
import { MeshError } from "../../base/errors.ts";
import { isListOrWatch, isLongRunning, isWatch } from "../../kube/request-kind.ts";
import { createStatus } from "../../kube/status.ts";
import type { RefusedBy } from "../../policy/engine/engine.ts";
import { ruleName } from "../../policy/policy.ts";
import { policyRequestOf } from "../../policy/policy-request.ts";
import { type Call, clientsRecord, type Layer } from "../call/call.ts";
import { countedSource } from "../http/body-sources.ts";
import { discardBody } from "../http/byte-stream.ts";
import type { Reply } from "../http/handler.ts";
import type { Policies } from "../policies/policies.ts";
import { PolicyError, refusalText, retryAfterOf, waitSeconds } from "../policies/policy-refusal.ts";

export interface LimitDeps {
  readonly policies: Pick<Policies, "hasLimits" | "limit">;
  readonly clock: Clock;
  readonly random: Random;
}

export function limit({ policies, clock, random }: LimitDeps): Layer {
  return (next) => async (call) => {
    if (isServing(call)) return next(call);
    const own = clientsRecord(call.record);
    if (!policies.hasLimits) {
      own.isAdmitted = true;
      return next(call);
    }
    const decision = policies.limit(policyRequestOf(own.info ?? call.info, own.lock));
    if (decision.kind === "refused") {
      discardBody(call.body);
      throw refusal(call, decision, random);
    }
    own.isAdmitted = true;
    // Nobody settles a request that is sent after the answer.
    if (own.isAnswered) decision.permit.release();
    else own.charge = { permit: decision.permit, atMs: clock.monotonicMs() };
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
 * gets a 429, since a reflector lists again after a 503. Recorders drop an Event without Retry-After.
 */
function refusal({ info: sent, record }: Call, refused: RefusedBy, random: Random): PolicyError {
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
    const wait = isEventCreate(info) ? undefined : retryAfterOf(refused, random);
    const details = { causes, ...(wait === undefined ? {} : { retryAfterSeconds: wait }) };
    return new PolicyError(code, createStatus("TooManyRequests", message, details), wait);
  }
  const details = { causes, ...(seconds === undefined ? {} : { retryAfterSeconds: seconds }) };
  return new PolicyError(code, createStatus("ServiceUnavailable", message, details));
}

function isEventCreate(info: Call["info"]): boolean {
  return info.kind === "resource" && info.resource === "events" && info.verb === "create";
}

export function settle({ clock }: { readonly clock: Clock }): Layer {
  return (next) => async (call) => {
    const { record } = call;
    let reply: Reply;
    try {
      reply = await next(call);
    } catch (error) {
      if (isUpstreamFailure(error)) record.charge?.permit.settle({ kind: "failed" });
      record.charge?.permit.release();
      throw error;
    } finally {
      record.isAnswered = true;
    }
    if (record.charge === undefined) return reply;
    const { permit, atMs } = record.charge;
    permit.settle({ kind: "answered", status: reply.status, tookMs: clock.monotonicMs() - atMs });
    const { body } = reply;
    if (body !== null && !(body instanceof Uint8Array) && !isLongRunning(call.info))
      return { ...reply, body: countedSource(body, permit.release) };
    permit.release();
    return reply;
  };
}

/** False if the client left or its body broke off. */
function isUpstreamFailure(error: unknown): boolean {
  return error instanceof MeshError && error.code.startsWith("UPSTREAM_");
}
