// Short forms of the updates that a manager sends, and of a proxy's registration.

import type { AckMessage, ResourceMessage, RouteClaimsMessage, UpdateMessage } from "../../src/mesh/contract/messages.ts";
import { POLICY, policiesDigest } from "../../src/mesh/contract/policy-type.ts";
import { namedRoute, ROUTE } from "../../src/mesh/contract/route-type.ts";
import type { ProxyRegistration } from "../../src/mesh/link/proxy-record.ts";
import type { Snapshot } from "../../src/mesh/ownership/snapshot.ts";
import type { PolicySet } from "../../src/policy/policy.ts";

/** The capabilities of the present proxy. */
export const CAPABILITIES = ["type:routes", "freeze", "cluster-objects", "routes-delta", "type:policy", "type:budget"];

/** The whole snapshot. */
export function wholeUpdate(snapshot: Snapshot, nonce: number, spoil: Partial<ResourceMessage> = {}): UpdateMessage {
  const { version, digest } = snapshot;
  const resource = { type: ROUTE.name, version, digest, body: ROUTE.encode(snapshot), ...spoil };
  return { nonce, resource, baseDigest: "" };
}

/** The policies. */
export function policyUpdate(set: PolicySet, nonce: number, spoil: Partial<ResourceMessage> = {}): UpdateMessage {
  const head = { version: nonce, digest: policiesDigest(set) };
  return { nonce, resource: { type: POLICY.name, ...head, body: POLICY.encode({ ...head, ...set }), ...spoil }, baseDigest: "" };
}

/** The difference between two snapshots, of which there must be one. */
export function deltaUpdate(base: Snapshot, next: Snapshot, nonce: number): UpdateMessage {
  const body = ROUTE.delta?.encode(base, next);
  if (body === undefined) throw new Error("a delta was expected");
  return { ...wholeUpdate(next, nonce, { body }), baseDigest: base.digest };
}

/** The snapshot of an update that is whole. */
export function snapshotIn({ resource }: UpdateMessage): Snapshot {
  if (resource === null) throw new Error("the update has no resource");
  return ROUTE.decode(resource.body, resource);
}

/** The ACK of a route. */
export function routeAck(nonce: number, version: number): AckMessage {
  return { type: ROUTE.name, nonce, version };
}

/** The claims of a registration about routes. */
export function claimsOf(acknowledged?: Snapshot, ...inDoubt: readonly Snapshot[]): RouteClaimsMessage {
  return {
    version: (inDoubt.at(-1) ?? acknowledged)?.version ?? 0,
    acknowledged: acknowledged === undefined ? null : namedRoute(acknowledged),
    inDoubt: inDoubt.map(namedRoute),
    mayHoldMore: false,
  };
}

/** A registration in the form that the registry accepts. */
export function registered(acknowledged?: Snapshot, more: Partial<ProxyRegistration> = {}): ProxyRegistration {
  const route = { version: acknowledged?.version ?? 0, acknowledged, inDoubt: [], mayHoldMore: false };
  return { uid: "uid-1", streamNumber: 0, capabilities: ["type:routes"], route, ...more };
}
