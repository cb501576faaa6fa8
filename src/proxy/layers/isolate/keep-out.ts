// What a caller gets in a subset that does not serve it (marked by the `caller` layer): it owns nothing. Lists are empty with
// a real resourceVersion and watches idle, so that informers neither hang nor crash; everything else about objects is
// forbidden, with the rule's name. Discovery and reviews of access pass, and so does the leader-election lock: it is the
// subset's own, and an operator that never gets it would stand still with all its other clients, or end itself.
import { StatusError } from "../../../kube/status.ts";
import { nothingOf } from "../../../route/callers.ts";
import { isReview } from "../../../route/decide.ts";
import type { ResourceView } from "../../../route/snapshot.ts";
import type { Handler, Layer } from "../../http/handler.ts";
import { isResourceCall, type ResourceCall } from "../../http/resource-call.ts";
import type { Enforced, Session } from "../../session/session.ts";

export interface KeepOutDeps {
  /** The layer for callers that are served. */
  readonly served: Layer;
  /** The same over a session that owns nothing (`ownsNothing`): it has memory of its own of what was listed. */
  readonly nothing: Layer;
}

/** Makes the layer. */
export function keepOut({ served, nothing }: KeepOutDeps): Layer {
  return (next) => {
    const serve = served(next);
    const serveNothing = nothing(next);
    return (call) => {
      const rule = call.record.keptOutBy;
      if (rule === undefined) return serve(call);
      return isResourceCall(call) && !call.record.lock ? refuseOrNothing(call, rule, serveNothing) : serveNothing(call);
    };
  };
}

async function refuseOrNothing(call: ResourceCall, rule: string, serveNothing: Handler): ReturnType<Handler> {
  const { record, info } = call;
  if (info.verb === "list" || info.verb === "watch" || isReview(info)) return serveNothing(call);
  record.decision = "refused";
  record.reason = "default-only-caller";
  const what = info.name === "" ? info.resource : `${info.resource} "${info.name}"`;
  throw new StatusError(
    "Forbidden",
    `ctrlmesh: ${info.verb} ${what}: this user agent is served in the default subset only; spec.route.subsetDefaultOnlyUserAgents of the VirtualApp has ${JSON.stringify(rule)}`,
  );
}

/** The session as a caller sees it that is kept out. Everything but the views is the session's own. */
export function ownsNothing(session: Session): Session {
  const enforced = new WeakMap<Enforced, Enforced>();
  const views = new WeakMap<ResourceView, ResourceView>();
  const nothing = (now: Enforced): Enforced =>
    remembered(enforced, now, () => ({
      snapshot: now.snapshot,
      view: (group, resource) => {
        const view = now.view(group, resource);
        return remembered(views, view, () => nothingOf(view));
      },
    }));
  return {
    get current() {
      return session.current && nothing(session.current);
    },
    onChange: (listener) => session.onChange((now, before) => listener(nothing(now), before && nothing(before))),
    beginWrite: session.beginWrite,
    beginHold: session.beginHold,
  };
}

// The same answer for the same question, since listeners compare what is in force by identity.
function remembered<K extends WeakKey, V>(memory: WeakMap<K, V>, key: K, make: () => V): V {
  let value = memory.get(key);
  if (value === undefined) {
    value = make();
    memory.set(key, value);
  }
  return value;
}
