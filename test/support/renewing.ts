// Watches through the isolate layer, over a scripted API server, for the tests of their renewal while three namespaces move.

import { createRegistry } from "../../src/base/metrics.ts";
import type { Call } from "../../src/proxy/call/call.ts";
import type { Reply } from "../../src/proxy/http/handler.ts";
import { isolate } from "../../src/proxy/outbound/isolate/isolate.ts";
import { createEnforcer } from "../../src/proxy/session/enforcer.ts";
import { createFakeClock } from "./fake-clock.ts";
import { isolateDeps } from "./isolate.ts";
import { callOf, fakeUpstream, jsonReply, textOf, watchCode } from "./layer-call.ts";
import { recordingSink, type ScriptedSource, scriptedSource } from "./scripted-body.ts";
import { type Routes, routes } from "./test-routes.ts";

export const LIST = { kind: "PodList", apiVersion: "v1", metadata: { resourceVersion: "10" }, items: [] };
export const pod = (namespace: string, name: string, version: number) => ({
  metadata: { namespace, name, resourceVersion: String(version) },
});
export const event = (namespace: string, name: string, version: number, type = "ADDED") =>
  `${JSON.stringify({ type, object: { kind: "Pod", apiVersion: "v1", ...pod(namespace, name, version) } })}\n`;
export const bookmark = (version: number) =>
  `${JSON.stringify({ type: "BOOKMARK", object: { kind: "Pod", metadata: { resourceVersion: String(version) } } })}\n`;
/** What the proxy sends behind the events of a move: from here the client continues. */
export const toldUpTo = (version: number, kind = "Pod") => {
  const metadata = { resourceVersion: String(version) };
  return `${JSON.stringify({ type: "BOOKMARK", object: { kind, apiVersion: "v1", metadata } })}\n`;
};

/**
 * @param answer the response to a list of one namespace; by default one pod x of version 5
 * @param record the record of the callers
 */
export async function startRenewing(
  first: Routes,
  answer?: (call: Call, namespace: string) => Reply | Promise<Reply>,
  record: Partial<Call["record"]> = {},
) {
  const clock = createFakeClock();
  const session = createEnforcer();
  let version = 1;
  const enforce = (next: Routes) => session.enforce(routes(version++, next));
  enforce(first);
  const sources: ScriptedSource[] = [];
  const asked: string[] = [];
  const gate: { list: Promise<Reply> | undefined; watch: Promise<void> | undefined } = { list: undefined, watch: undefined };
  const upstream = fakeUpstream(async (call) => {
    const { query, path } = call.info;
    if (query.get("watch") === "1") {
      await gate.watch;
      const source = scriptedSource();
      sources.push(source);
      asked.push(`watch from ${query.get("resourceVersion")} ${query.get("timeoutSeconds") ?? ""}`.trim());
      return { status: 200, headers: { "content-type": "application/json" }, body: source };
    }
    const version = query.get("resourceVersion");
    if (path === "/api/v1/namespaces") {
      const names = version === null ? [] : (query.get("fieldSelector")?.split("metadata.name=").slice(1) ?? []);
      const items = names.map((name) => ({ metadata: { name, resourceVersion: "5" } }));
      return jsonReply({ kind: "NamespaceList", apiVersion: "v1", metadata: { resourceVersion: version ?? "10" }, items });
    }
    const [, namespace] = /namespaces\/([^/]+)\/pods$/.exec(path) ?? [];
    // The version of this moment is later than all events so far.
    if (query.has("limit")) return gate.list ?? jsonReply({ ...LIST, metadata: { resourceVersion: "1000" } });
    if (namespace === undefined) return gate.list ?? jsonReply(LIST);
    asked.push(`list ${namespace} at ${query.get("resourceVersion")} ${query.get("resourceVersionMatch")}`);
    const items = [pod(namespace, "x", 5)];
    const metadata = { resourceVersion: query.get("resourceVersion") };
    return answer?.(call, namespace) ?? jsonReply({ ...LIST, metadata, items });
  });
  const registry = createRegistry("proxy", "test");
  const discovery = { scopeOf: async () => "namespaced" as const };
  const handler = isolate(isolateDeps({ session, clock, registry, random: () => 0.5, discovery }))(upstream);
  const send = (target: string) => {
    const call = callOf("GET", target);
    return handler({ ...call, record: { ...call.record, ...record } });
  };
  const list = async (target = "/api/v1/pods") => textOf(await send(target));
  await list();
  const open = async (query = "resourceVersion=10&allowWatchBookmarks=true", resource = "pods") => {
    if (resource !== "pods") await list(`/api/v1/${resource}`);
    const reply = await send(`/api/v1/${resource}?watch=1&${query}`);
    if (reply.body === null || reply.body instanceof Uint8Array) throw new Error(`no stream: ${watchCode(reply)}`);
    const sink = recordingSink();
    return { sink, control: reply.body.open(sink) };
  };
  const settle = () => clock.advance(10);
  /** What a client that continues from the version is told before all else. Throws if it has to list. */
  const toldFrom = async (from: number) => {
    const { sink } = await open(`resourceVersion=${from}&allowWatchBookmarks=true`);
    await settle();
    return sink.text;
  };
  const renewals = async () =>
    (await registry.getSingleMetricAsString("ctrlmesh_proxy_watch_renewals_total")).match(/^ctrl.*$/gm);
  return { gate, clock, session, enforce, upstream, asked, sources, send, list, open, settle, toldFrom, renewals };
}

/** Like the upstream: an error when the call is cancelled. */
export const unanswered = ({ signal }: Call) =>
  new Promise<Reply>((_, reject) => signal.addEventListener("abort", () => reject(new Error("given up"))));

export const ONE: Routes = { blue: ["a", "b"], defaultSubset: ["n", "m"] };
export const MORE: Routes = { blue: ["a", "b", "n"], defaultSubset: ["m"] };
