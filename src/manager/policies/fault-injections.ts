// FaultInjection as a policy kind: it selects pods by their labels. Invariants: a fault with maxDuration is
// in effect only once its start is stored in the status, so a restarted manager does not prolong it. A fault
// that names no requests is about those to the API server only.
import { durationMs } from "../../api/duration.ts";
import { FAULT_DISABLED, type FaultInjection, type HttpFault, validateFaultInjection } from "../../api/fault-injection.ts";
import { FAULT_INJECTIONS } from "../../api/resources.ts";
import { parseServer } from "../../api/server-match.ts";
import { matchesSelector } from "../../kube/label-selector.ts";
import type { FaultRule, HttpRule, RequestMatch, ResourceRule, TextMatch, TimeWindow } from "../../policy/policy.ts";
import { compileResourceRule, createPolicyKind, type RuleHead } from "./policy-kind.ts";

export const faultInjections = createPolicyKind({
  resource: FAULT_INJECTIONS,
  validate: validateFaultInjection,
  offLabel: FAULT_DISABLED,
  waitsFor: (injection) =>
    injection.spec.maxDuration === undefined || startMs(injection) !== undefined
      ? ""
      : "waits until the start of spec.maxDuration is stored in the status",
  endsMs: untilMs,
  rulesOf(injection, headOf) {
    const until = untilMs(injection);
    const nameOf = ({ name }: HttpFault, index: number) => name ?? `httpFault[${index}]`;
    return {
      faults: injection.spec.httpFault.map((fault, index) => ruleOf(fault, headOf(nameOf(fault, index)), until)),
    };
  },
  isFor: ({ spec }, { labels }) => matchesSelector(spec.selector, labels),
  notes,
});

function untilMs(injection: FaultInjection): number | undefined {
  const { maxDuration } = injection.spec;
  const start = startMs(injection);
  return maxDuration === undefined || start === undefined ? undefined : start + durationMs(maxDuration);
}

/** Undefined unless the start is stored. */
function startMs({ metadata, status }: FaultInjection): number | undefined {
  if (status?.specSince === undefined || status.observedGeneration !== metadata.generation) return undefined;
  return Date.parse(status.specSince);
}

/** @param until milliseconds since the epoch; undefined for no end */
function ruleOf({ delay, abort, match, effectiveTime }: HttpFault, head: RuleHead, until: number | undefined): FaultRule {
  return {
    ...head,
    match: matchOf(match),
    ...(delay && { delay: { ms: durationMs(delay.fixedDelay), percent: percentOf(delay) } }),
    ...(abort && isError(abort) && { abort: { status: abort.httpStatus, percent: percentOf(abort) } }),
    ...(effectiveTime && { effective: windowOf(effectiveTime) }),
    ...(until === undefined ? {} : { untilMs: until }),
  };
}

const ALL = ["*"] as const;

const ALL_REQUESTS: RequestMatch = {
  resources: [{ apiGroups: ALL, resources: ALL, verbs: ALL, namespaces: ALL, clusterScope: true }],
  urls: [{ url: "*", methods: ALL }],
  http: [],
};

function matchOf({ resources = [], httpMatch = [] }: NonNullable<HttpFault["match"]> = {}): RequestMatch {
  if (resources.length + httpMatch.length === 0) return ALL_REQUESTS;
  return { resources: resources.map(resourceRuleOf), urls: [], http: httpMatch.map(httpRuleOf) };
}

type ResourceMatch = NonNullable<NonNullable<HttpFault["match"]>["resources"]>[number];

/** An absent list matches all. */
function resourceRuleOf({
  apiGroups = ALL,
  resources = ALL,
  verbs = ALL,
  namespaces = ALL,
  except,
}: ResourceMatch): ResourceRule {
  return compileResourceRule({ apiGroups, resources, verbs, namespaces, ...(except && { except }) });
}

type HttpMatch = NonNullable<NonNullable<HttpFault["match"]>["httpMatch"]>[number];

/** The host is in the form in which proxies see it. */
function httpRuleOf({ host, path, method, headers = [] }: HttpMatch): HttpRule {
  return {
    ...(host && hostMatchOf(host)),
    ...(path && { path: textMatchOf(path) }),
    ...(method === undefined || method === "*" ? {} : { method }),
    headers: headers.map(({ name, value }) => (value === undefined ? { name } : { name, value })),
  };
}

function hostMatchOf(match: NonNullable<HttpMatch["host"]>): Pick<HttpRule, "host" | "port"> {
  const server = match.exact === undefined ? undefined : parseServer(match.exact);
  if (server === undefined) return { host: textMatchOf(match) };
  return { host: { exact: server.host }, ...(server.port === undefined ? {} : { port: server.port }) };
}

function textMatchOf({ exact, regex = "" }: NonNullable<HttpMatch["host"]>): TextMatch {
  return exact === undefined ? { regex } : { exact };
}

type Abort = NonNullable<HttpFault["abort"]>;

/** 0 and 200 mean no abort, and an absent status is 0. */
function isError(abort: Abort): abort is Abort & { readonly httpStatus: number } {
  return (abort.httpStatus ?? 0) >= 400;
}

/** An absent percentage means never. */
function percentOf({ percent = "0" }: { readonly percent?: string | undefined }): number {
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

/** A percentage that was forgotten is valid, and means never. */
function* notes({ spec: { httpFault } }: FaultInjection): Iterable<string> {
  for (const [index, { delay, abort }] of httpFault.entries()) {
    const path = `spec.httpFault[${index}]`;
    if (delay !== undefined && percentOf(delay) === 0) yield `${path}.delay never happens: set percent, such as "100"`;
    if (abort === undefined) continue;
    if (percentOf(abort) === 0) yield `${path}.abort never happens: set percent, such as "100"`;
    else if (!isError(abort)) yield `${path}.abort never happens: httpStatus ${abort.httpStatus ?? 0} means no abort`;
  }
}
