// The rules of a FaultInjection. Pure. Invariant: a fault that names no requests is about those to the API
// server, and never about other servers. Called by fault-injection-kind.ts.
import { durationMs } from "../../api/duration.ts";
import type { FaultInjection, HttpFault } from "../../api/fault-injection.ts";
import type { FaultRule, RequestMatch, TimeWindow } from "../../policy/policy.ts";
import { compileHttpMatch } from "./compile-egress.ts";
import { ALL_REQUESTS, compileResourceRule, modeOf, originOf } from "./compile-requests.ts";

/** @param untilMs when the rules end, in milliseconds since the epoch; undefined for no end */
export function compileFaultInjection({ metadata, spec }: FaultInjection, untilMs?: number): FaultRule[] {
  return spec.httpFault.map(
    ({ name, delay, abort, match, effectiveTime }, index): FaultRule => ({
      origin: originOf("FaultInjection", metadata, name ?? `httpFault[${index}]`),
      mode: modeOf(spec),
      match: matchOf(match),
      ...(delay && { delay: { ms: durationMs(delay.fixedDelay), percent: percentOf(delay) } }),
      ...(abort && isError(abort.httpStatus) && { abort: { status: abort.httpStatus, percent: percentOf(abort) } }),
      ...(effectiveTime && { effective: windowOf(effectiveTime) }),
      ...(untilMs === undefined ? {} : { untilMs }),
    }),
  );
}

function matchOf({ resources = [], httpMatch = [] }: NonNullable<HttpFault["match"]> = {}): RequestMatch {
  if (resources.length + httpMatch.length === 0) return ALL_REQUESTS;
  return { resources: resources.map(compileResourceRule), urls: [], http: httpMatch.map(compileHttpMatch) };
}

/** 0 and 200 mean no abort. */
export function isError(status: number): boolean {
  return status >= 400;
}

/** Absent means never. */
export function percentOf({ percent = "0" }: { readonly percent?: string | undefined }): number {
  return Number(percent);
}

function windowOf(effective: NonNullable<HttpFault["effectiveTime"]>): TimeWindow {
  const { startTime = "00:00:00", endTime = "00:00:00", daysOfWeek = [], daysOfMonth = [], months = [] } = effective;
  return { startSecond: secondOf(startTime), endSecond: secondOf(endTime), daysOfWeek, daysOfMonth, months };
}

/** Seconds after midnight. */
function secondOf(time: string): number {
  const [hours = 0, minutes = 0, seconds = 0] = time.split(":").map(Number);
  return (hours * 60 + minutes) * 60 + seconds;
}
