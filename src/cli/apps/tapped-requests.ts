// The next requests of the pods of an app, as their sidecars see them.
import { z } from "zod";
import { parseDuration } from "../../base/clock.ts";
import type { Call, Flags, FlagValues } from "../frame/command.ts";
import { failure, usageError } from "../frame/command.ts";
import { appOf } from "./app-of.ts";
import { askSidecarsOf } from "./app-sidecars.ts";

/** As in the access log (docs/reference/observability.md). */
const REQUEST = z.looseObject({
  method: z.string(),
  code: z.number(),
  seconds: z.number(),
  decision: z.string(),
  reason: z.string().optional(),
  rule: z.string().optional(),
  verb: z.string().optional(),
  group: z.string().optional(),
  resource: z.string().optional(),
  subresource: z.string().optional(),
  namespace: z.string().optional(),
  name: z.string().optional(),
  path: z.string().optional(),
});
const ANSWER = z.object({ requests: z.array(REQUEST) });

export type TappedRequest = z.output<typeof REQUEST> & { readonly pod: string };

/** The most of one pod. */
const MAX_REQUESTS = 1_000;
const MAX_SECONDS = 60;

export const TAP_FLAGS: Flags = {
  for: { type: "string", value: "DURATION", help: "how long to listen, 1s to 60s; default 10s" },
  pod: { type: "string", value: "POD", help: "only this pod of the app" },
};

/** The requests that end from now on, in the time of the flag --for. */
export async function tapRequests(call: Call): Promise<TappedRequest[]> {
  const { flags, output } = call;
  const seconds = secondsOf(flags);
  const { cluster, app } = await appOf(call);
  const pod = flags.text("pod");
  output.hint(`listening for ${seconds} s`);
  const path = `/debug/requests?count=${MAX_REQUESTS}&seconds=${seconds}`;
  const asked = await askSidecarsOf(cluster, [app], { path, schema: ANSWER, waitsMs: seconds * 1_000 }, output, pod);
  for (const each of asked) if (each.problem !== undefined) output.hint(`pod ${each.pod}: ${each.problem}`);
  if (asked.every(({ answer }) => answer === undefined)) throw failure("no sidecar has answered");
  const full = asked.find(({ answer }) => answer?.requests.length === MAX_REQUESTS);
  if (full !== undefined) output.hint(`pod ${full.pod} has had more than ${MAX_REQUESTS} requests: only the first are shown`);
  return asked.flatMap(({ pod: of, answer }) => (answer?.requests ?? []).map((request) => ({ ...request, pod: of })));
}

function secondsOf(flags: FlagValues): number {
  const text = flags.text("for") ?? "10s";
  const seconds = Math.round((parseDuration(text) ?? 0) / 1_000);
  if (seconds < 1 || seconds > MAX_SECONDS) throw usageError(`--for: "${text}" is no duration from 1s to ${MAX_SECONDS}s`);
  return seconds;
}

/** True if the sidecar answered instead of the API server. */
export function isRefused({ decision }: TappedRequest): boolean {
  return decision === "refused" || decision === "fenced";
}

/** For example "list configmaps" or "delete deployments.apps team-b/web". */
export function requestText({
  method,
  path = "",
  verb,
  group = "",
  resource = "",
  subresource = "",
  namespace = "",
  name = "",
}: TappedRequest): string {
  if (verb === undefined) return `${method} ${path}`;
  const type = [group === "" ? resource : `${resource}.${group}`, subresource].filter((part) => part !== "").join("/");
  return [verb, type, [namespace, name].filter((part) => part !== "").join("/")].filter((part) => part !== "").join(" ");
}
