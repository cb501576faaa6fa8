// The next requests of the pods of an app, as their sidecars see them.
import { z } from "zod";
import { parseDuration } from "../../base/clock.ts";
import type { Cluster } from "../frame/cluster.ts";
import type { Call, Flags, FlagValues } from "../frame/command.ts";
import { failure, usageError } from "../frame/command.ts";
import { appOf } from "./app-of.ts";
import { askSidecarsOf } from "./app-sidecars.ts";
import type { FoundApp } from "./apps.ts";

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
  return requestsOf(cluster, app, { seconds, hint: output.hint, ...(pod !== undefined && { pod }) });
}

export interface Listening {
  readonly seconds: number;
  /** Only this pod of the app. */
  readonly pod?: string;
  /** Called with what is missing in the result. */
  hint(text: string): void;
}

/** The requests of an app that end from now on. @throws MeshError `COMMAND_FAILED` if no sidecar answers */
export async function requestsOf(
  cluster: Cluster,
  app: Pick<FoundApp, "name" | "namespace">,
  { seconds, pod, hint }: Listening,
): Promise<TappedRequest[]> {
  const path = `/debug/requests?count=${MAX_REQUESTS}&seconds=${seconds}`;
  const asked = await askSidecarsOf(cluster, [app], { path, schema: ANSWER, waitsMs: seconds * 1_000 }, { hint }, pod);
  for (const each of asked) if (each.problem !== undefined) hint(`pod ${each.pod}: ${each.problem}`);
  if (asked.every(({ answer }) => answer === undefined)) throw failure("no sidecar has answered");
  const full = asked.find(({ answer }) => answer?.requests.length === MAX_REQUESTS);
  if (full !== undefined) hint(`pod ${full.pod} has had more than ${MAX_REQUESTS} requests: only the first are shown`);
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

export interface RequestSummary {
  /** Verb and resource. */
  readonly request: string;
  readonly count: number;
  readonly refused: number;
  readonly medianMs: number;
  readonly pods: number;
}

/** By verb and resource, the most frequent first. */
export function summaries(requests: readonly TappedRequest[]): RequestSummary[] {
  const groups = Map.groupBy(requests, (request) => requestText({ ...request, namespace: "", name: "" }));
  return [...groups].map(([request, of]) => summaryOf(request, of)).sort((a, b) => b.count - a.count);
}

function summaryOf(request: string, of: readonly TappedRequest[]): RequestSummary {
  const times = of.map(({ seconds }) => seconds).sort((a, b) => a - b);
  const medianMs = Math.round((times[Math.floor(times.length / 2)] ?? 0) * 1_000);
  const refused = of.filter(isRefused).length;
  return { request, count: of.length, refused, medianMs, pods: new Set(of.map(({ pod }) => pod)).size };
}
