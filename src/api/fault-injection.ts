// The kind FaultInjection: delays and failures of the requests of pods, for tests. Invariant: it has each
// field of KusionStack's kind, with the same spelling. An unknown or older field is refused, because a fault
// that fires too often does harm.
import { optional, z } from "zod";
import type { Immutable } from "../base/json.ts";
import { durationSchema } from "./duration.ts";
import { celRules, someField, withChecks } from "./extensions.ts";
import { int, nonEmptyList, textUpTo } from "./fields.ts";
import { defineKind, KUSIONSTACK_GROUP, objectMetaSchema } from "./kind.ts";
import { nonEmptySelector } from "./label-selector.ts";
import { POLICY_COLUMNS, policyStatusSchema } from "./policy-status.ts";
import { type ValidationResult, validate } from "./problems.ts";
import { boundedRegexes } from "./regex.ts";
import { type Finding, fieldAt, itemsOf, stringsOf, uniqueNames, withRules } from "./rule.ts";
import { anyMethodSchema, headerNameSchema, hostMatchSchema, pathMatchSchema } from "./server-match.ts";
import {
  boundedResourceRules,
  MAX_RESOURCE_RULES,
  MAX_TRAFFIC_RULES,
  modeSchema,
  resourceMatchSchema,
  ruleNameSchema,
} from "./traffic-rules.ts";

export const FAULT_DISABLED = "faultinjection.ctrlmesh.kusionstack.io/disable";

const percentSchema = z
  .string({ error: ({ input }) => (typeof input === "number" ? 'must be a string from "0" to "100", in quotes' : undefined) })
  .max(16)
  .regex(/^(100(\.0*)?|[0-9]{1,2}(\.[0-9]*)?|\.[0-9]+)$/, {
    error: 'must be a number from "0" to "100" such as "12.5", without a sign',
  })
  .optional();

const PERCENT_TEXT = 'as a string such as "12.5". The default is "0": no request.';

const WRONG_STATUS = "must be from 400 to 599; 0 and 200 mean no abort";
const isAllowedStatus = (status: number) => status === 0 || status === 200 || (status >= 400 && status <= 599);

const httpMatchSchema = z.strictObject({
  host: optional(hostMatchSchema).describe("Host of the requests."),
  path: optional(pathMatchSchema).describe(
    "Path of the requests, without query. Escaped letters are compared as plain ones, and doubled slashes as one. The paths inside of a tunnel are encrypted and do not match.",
  ),
  method: optional(anyMethodSchema).describe(
    'HTTP method of the requests, or "*" for all, which is the default. HTTPS clients open a tunnel with the method CONNECT.',
  ),
  headers: optional(
    z
      .array(
        z.strictObject({
          name: headerNameSchema.describe("Name, in upper or lower case."),
          value: optional(textUpTo(1024)).describe("Value. The default is any value: the request has the header."),
        }),
      )
      .max(16),
  ).describe("Headers of the requests. All of them must match. The headers inside of a tunnel are encrypted and do not match."),
});

const matchSchema = z.strictObject({
  resources: optional(z.array(resourceMatchSchema).max(MAX_RESOURCE_RULES)).describe(
    "Requests to the API server: those that match one of the entries. Without entries, and without httpMatch: all requests to the API server.",
  ),
  httpMatch: optional(z.array(httpMatchSchema).max(MAX_RESOURCE_RULES)).describe(
    "Requests to other servers than the API server: those that match one of the entries. A field that an entry does not set matches every request. The entries apply only to pods with the annotation ctrlmesh.kruise.io/egress.",
  ),
});

const calendarNumbers = (min: number, max: number) => optional(z.array(int(min, max)).max(max + 1));

const timeSchema = textUpTo(8).regex(/^([01]?[0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]$/, {
  error: 'must be a time of the day such as "22:30:00"',
});

const effectiveTimeSchema = withChecks(
  z.strictObject({
    startTime: optional(timeSchema).describe(
      "Time of the day in UTC from which the fault is in effect. The default is the whole day.",
    ),
    endTime: optional(timeSchema).describe(
      "Time of the day in UTC at which the fault ends. If it is not after startTime, the fault ends on the next day.",
    ),
    daysOfWeek: calendarNumbers(0, 6).describe(
      "Days of the week on which the fault begins; 0 is Sunday. The default is every day. The lists of days and months must all match.",
    ),
    daysOfMonth: calendarNumbers(1, 31).describe("Days of the month on which the fault begins. The default is every day."),
    months: calendarNumbers(1, 12).describe("Months in which the fault begins; 1 is January. The default is every month."),
  }),
  {
    rule: "has(self.startTime) == has(self.endTime)",
    message: "set both startTime and endTime, or neither",
    holds: ({ startTime, endTime }) => (startTime === undefined) === (endTime === undefined),
  },
);

const httpFaultSchema = withChecks(
  z.strictObject({
    name: optional(ruleNameSchema).describe(
      "Name of the fault, in status, answers and metrics. The default is its place in the list, for example httpFault[0].",
    ),
    delay: optional(
      z.strictObject({
        fixedDelay: durationSchema("1ms", "30s").describe('Time by which requests are delayed, for example "300ms".'),
        percent: percentSchema.describe(`Percentage of the requests that are delayed, ${PERCENT_TEXT}`),
      }),
    ).describe("Delays requests. The delays of several faults add up, to at most 30 seconds."),
    abort: optional(
      z.strictObject({
        httpStatus: optional(
          z
            .int()
            .refine(isAllowedStatus, { error: WRONG_STATUS })
            .meta(celRules({ rule: "self in [0, 200] || self >= 400 && self <= 599", message: WRONG_STATUS })),
        ).describe("Status of the answer, from 400 to 599. 0, the default, and 200 mean no abort."),
        percent: percentSchema.describe(`Percentage of the requests that fail, ${PERCENT_TEXT}`),
      }),
    ).describe(
      "Answers requests with an error, so that they reach no server. The first fault in the list that aborts a request decides.",
    ),
    match: optional(matchSchema).describe(
      "Requests that the fault is about. The default is all requests to the API server. Leases in the pod's namespace and the operator's leader-election lock are exempt, unless resources name leases of the group coordination.k8s.io.",
    ),
    effectiveTime: optional(effectiveTimeSchema).describe("When the fault is in effect. The default is always."),
  }),
  someField("does nothing: set delay or abort", "delay", "abort"),
);

const specSchema = withRules(
  z.strictObject({
    selector: nonEmptySelector().describe(
      "Selects the pods whose requests the faults are for, in the namespace of this object. The selector must not be empty.",
    ),
    mode: modeSchema,
    disabled: optional(z.boolean()).describe("If true, no fault is in effect. The default is false."),
    maxDuration: optional(durationSchema("1s", "720h")).describe(
      "Time after which the faults end by themselves, counted from the creation of this object or the last change of its spec. The default is no end.",
    ),
    httpFault: nonEmptyList(httpFaultSchema, MAX_TRAFFIC_RULES).describe("The faults. Every fault that matches applies."),
  }),
  specRules,
);

export const faultInjectionKind = defineKind({
  group: KUSIONSTACK_GROUP,
  kind: "FaultInjection",
  plural: "faultinjections",
  shortName: "fj",
  description:
    "FaultInjection delays or fails requests that pods send to the API server or to other servers, to test how an operator copes. The faults end a minute after a proxy has lost the manager.",
  columns: POLICY_COLUMNS,
  metadata: objectMetaSchema,
  spec: specSchema.describe("The pods, and the faults of their requests."),
  status: policyStatusSchema,
});

export type FaultInjection = Immutable<z.output<typeof faultInjectionKind.schema>>;
export type HttpFault = Immutable<z.output<typeof httpFaultSchema>>;

export function validateFaultInjection(object: unknown): ValidationResult<FaultInjection> {
  return validate(faultInjectionKind.schema, object);
}

function* specRules(spec: unknown): Iterable<Finding> {
  const faults = itemsOf(fieldAt(spec, "httpFault"));
  const resourceRules = faults.flatMap((fault) => itemsOf(fieldAt(fault, "match", "resources")));
  yield* boundedResourceRules(resourceRules, ["httpFault"]);
  const texts = faults
    .flatMap((fault) => itemsOf(fieldAt(fault, "match", "httpMatch")))
    .flatMap((match) => [fieldAt(match, "host", "regex"), fieldAt(match, "path", "regex")]);
  yield* boundedRegexes(stringsOf(texts), ["httpFault"], "expressions");
  yield* uniqueNames(spec, ["httpFault"]);
  yield* placeNames(faults);
}

/** A fault without a name is called after its place. */
function* placeNames(faults: readonly unknown[]): Iterable<Finding> {
  for (const [index, fault] of faults.entries()) {
    const value = fieldAt(fault, "name");
    if (typeof value !== "string" || !/^httpFault\[\d+\]$/.test(value)) continue;
    yield { path: ["httpFault", index, "name"], value, message: "is kept for a fault without a name; use another" };
  }
}
