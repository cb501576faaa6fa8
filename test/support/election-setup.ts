// The election layer in tests: a pod of subset "blue" with the lock shop-lock in namespace shop, and an API server that echoes.
import { silentLogger } from "../../src/base/log.ts";
import { encodingOf } from "../../src/kube/codec/content-negotiation.ts";
import { StatusError } from "../../src/kube/status.ts";
import type { LockAccessMessage, UnnamedLockMessage } from "../../src/mesh/contract/messages.ts";
import type { Snapshot } from "../../src/mesh/ownership/snapshot.ts";
import type { Call } from "../../src/proxy/call/call.ts";
import type { Reply } from "../../src/proxy/http/handler.ts";
import { election } from "../../src/proxy/outbound/election/election.ts";
import { createLockGate, lockGate } from "../../src/proxy/outbound/election/lock-gate.ts";
import { createEnforcer } from "../../src/proxy/session/enforcer.ts";
import { NO_MEMORY } from "../../src/proxy/session/memory.ts";
import { createFakeClock } from "./fake-clock.ts";
import { type CallOptions, callOf, fakeUpstream, jsonReply } from "./layer-call.ts";
import { reportTo } from "./report-to.ts";
import { routes } from "./test-routes.ts";

export const LEASES = "/apis/coordination.k8s.io/v1/namespaces/shop/leases";
export const CONFIGMAPS = "/api/v1/namespaces/shop/configmaps";
export const ENDPOINTS = "/api/v1/namespaces/shop/endpoints";

export const lease = (name: string, holder = "pod-1", namespace = "shop") => ({
  kind: "Lease",
  apiVersion: "coordination.k8s.io/v1",
  metadata: { name, namespace, resourceVersion: "9007199254740993" },
  spec: { holderIdentity: holder },
});

export const jsonBody = (value: unknown): CallOptions => ({
  headers: { "content-type": "application/json" },
  body: JSON.stringify(value),
});

/** Responds like the API server: a write returns the written object, and any other request returns a lock of the requested name. */
export function echo(call: Call): Reply {
  const type = call.headers["content-type"] ?? "";
  if (call.body instanceof Uint8Array && call.body.length > 0 && encodingOf(type) !== "other") {
    return { status: 200, headers: { "content-type": type }, body: call.body };
  }
  return jsonReply(lease(decodeURIComponent(call.info.segments.at(-1) ?? "")));
}

export function setupElection(more: Partial<Snapshot> = {}, answer: (call: Call) => Reply | Promise<Reply> = echo) {
  const enforcer = createEnforcer();
  enforcer.enforce(routes(1, {}, more));
  const clock = createFakeClock();
  const leader: boolean[] = [];
  const reports: (LockAccessMessage | null)[] = [];
  const unnamed: (UnnamedLockMessage | null)[] = [];
  const session = {
    get current() {
      return enforcer.current;
    },
    onChange: enforcer.onChange,
    beginWrite: enforcer.beginWrite,
    beginHold: enforcer.beginHold,
    beginRenewal: enforcer.beginRenewal,
  };
  const report = reportTo({
    leader: (value) => void (leader.at(-1) !== value && leader.push(value)),
    lock: (access) => void reports.push(access),
    unnamedLock: (lock) => void unnamed.push(lock),
  });
  const upstream = fakeUpstream(answer);
  const gate = createLockGate(clock, NO_MEMORY.lock);
  const handler = election({ session, report, gate, clock, log: silentLogger() })(lockGate(gate)(upstream));
  const send = (method: string, target: string, options?: CallOptions) => handler(callOf(method, target, options));
  const refusal = async (method: string, target: string, options?: CallOptions) => {
    const error = await send(method, target, options).catch((thrown: unknown) => thrown);
    if (!(error instanceof StatusError)) throw new Error(`not refused: ${String(error)}`);
    return error.status;
  };
  const sent = () => upstream.calls.at(-1);
  const sentText = () => Buffer.from(sent()?.body as Uint8Array).toString("utf8");
  const sentBody = () => JSON.parse(sentText());
  return { enforcer, clock, leader, reports, unnamed, upstream, handler, send, refusal, sent, sentText, sentBody };
}
