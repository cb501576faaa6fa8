// What an answer of a proxy, or another resource for it, makes of its record, and what the proxy is sent next. Pure.
import type { Transition } from "../../base/machine.ts";
import type { NackMessage, UpdateMessage } from "../contract/messages.ts";
import { acceptsType, type ResourceType, type Versioned } from "../contract/resource-type.ts";
import { acknowledge, type Delivery, nextUpdate, refuse, type Updates, withDesired } from "./delivery.ts";
import { deliveryOf, type ProxyRecord, withDelivery } from "./proxy-record.ts";

/** All are about one resource type. */
export type RecordEvent =
  | { readonly kind: "registered" }
  | { readonly kind: "acked"; readonly nonce: number }
  | { readonly kind: "nacked"; readonly nack: Pick<NackMessage, "nonce" | "problems" | "needsWhole"> }
  | { readonly kind: "published"; readonly resource: Versioned };

/** In the order in which they have to be carried out. */
export type RecordEffect =
  | { readonly kind: "acknowledged" }
  | { readonly kind: "refused"; readonly problems: readonly string[] }
  | { readonly kind: "needs-whole" }
  | { readonly kind: "send"; readonly update: UpdateMessage }
  /** Others have to look at the facts about the proxy again. */
  | { readonly kind: "changed" };

/** An answer to an update that is not outstanding changes nothing. */
export function stepRecord<S>(
  record: ProxyRecord<S>,
  type: ResourceType<Versioned>,
  event: RecordEvent,
  updates: Updates,
): Transition<ProxyRecord<S>, RecordEffect> {
  const before = deliveryOf(record, type);
  const withNext = (delivery: Delivery, first: readonly RecordEffect[], mayDiff = true) => {
    const next = nextFor(withDelivery(record, type, delivery), type, updates, mayDiff);
    const sent: RecordEffect[] = next.update === undefined ? [] : [{ kind: "send", update: next.update }];
    return { state: next.record, effects: [...first, ...sent] };
  };
  switch (event.kind) {
    case "registered":
      return withNext(before, []);
    case "acked": {
      const delivery = acknowledge(before, event.nonce);
      return delivery === undefined ? { state: record, effects: [] } : changed(withNext(delivery, [{ kind: "acknowledged" }]));
    }
    case "nacked": {
      const refused = refuse(before, event.nack);
      if (refused === undefined) return { state: record, effects: [] };
      if (!refused.isRefused) return withNext(refused.delivery, [{ kind: "needs-whole" }], false);
      return changed(withNext(refused.delivery, [{ kind: "refused", problems: event.nack.problems }]));
    }
    case "published": {
      const next = withNext(withDesired(before, event.resource), []);
      const hasSameProblems = deliveryOf(next.state, type).problems.join("\n") === before.problems.join("\n");
      return hasSameProblems ? next : changed(next);
    }
    default:
      return event satisfies never;
  }
}

function changed<State>({ state, effects }: Transition<State, RecordEffect>): Transition<State, RecordEffect> {
  return { state, effects: [...effects, { kind: "changed" }] };
}

/** The next update for a connected proxy. A type that the proxy does not accept is a problem of its delivery. */
function nextFor<S>(
  record: ProxyRecord<S>,
  type: ResourceType<Versioned>,
  updates: Updates,
  mayDiff: boolean,
): { readonly record: ProxyRecord<S>; readonly update: UpdateMessage | undefined } {
  const before = deliveryOf(record, type);
  if (record.stream === undefined || before.desired === undefined) return { record, update: undefined };
  if (!record.capabilities.has(acceptsType(type.name))) {
    const problems = [`the proxy does not support resource type "${type.name}"`];
    return { record: withDelivery(record, type, { ...before, problems }), update: undefined };
  }
  const takesDeltas = type.delta !== undefined && record.capabilities.has(type.delta.capability);
  const { delivery, update } = nextUpdate(before, type, updates, mayDiff && takesDeltas);
  return { record: withDelivery(record, type, delivery), update };
}
