// The stage "ownership" of an explanation: who owns what the request is about, and what the pod is shown of it.
import type { ResourceInfo } from "../../kube/request-info.ts";
import { isListOrWatch } from "../../kube/request-kind.ts";
import { decide, isFrozen, isNamedByBody, isReview } from "../../mesh/ownership/decide.ts";
import { eventWriteOf } from "../../mesh/ownership/own-events.ts";
import { governingPlace, type ResourceView } from "../../mesh/ownership/snapshot.ts";
import { excludedText, ownerText } from "../../mesh/ownership/words.ts";
import { isResourceCall, type ResourceCall } from "../call/call.ts";
import { callerRefusal } from "../outbound/caller.ts";
import { frozenRefusal, ownerUnknown, passForeign, refusal } from "../outbound/isolate/refusals.ts";
import { dependsOn, type Walk } from "./walk.ts";

/** @throws StatusError as the layer `isolate` does */
export function explainOwnership(walk: Walk): void {
  const { call, say } = walk;
  if (!isResourceCall(call)) say("is about no object, so no subset owns it");
  else if (call.record.lock) say("every subset has a lock of its own");
  else if (call.record.excludedBy !== undefined) explainExcluded(walk, call, call.record.excludedBy);
  else explainOwner(walk, call);
}

function explainOwner(walk: Walk, call: ResourceCall): void {
  const { enforced, say } = walk;
  const view = enforced.view(call.info.group, call.info.resource);
  const info = namedByBody(call.info, view, walk);
  const place = governingPlace(info.group, info.resource, info);
  if (info.namespace !== "") say(`namespace ${info.namespace}: ${ownerText(view.ownerOf(place), place)}`);
  if (mayBeAboutOperator(walk, info, view)) {
    dependsOn(walk, "an Event about this pod or its lock passes, and others are their owner's");
    return;
  }
  const decision = decide(view, info, walk.asked.scope);
  switch (decision.kind) {
    case "allow":
      break;
    case "warn":
      passForeign(call, decision.message);
      break;
    case "narrow":
      call.record.decision = "narrowed";
      say(narrowText(view, info));
      break;
    case "check-labels":
      dependsOn(walk, `the object must have the labels ${decision.objects.labelSelector}`);
      break;
    case "hold":
      say("waits a few seconds for the manager to name the owner");
      throw ownerUnknown(decision.namespace, call);
    case "frozen":
      throw frozenRefusal(decision, enforced, call);
    case "refuse":
      throw refusal(decision, enforced, call);
    default:
      decision satisfies never;
  }
}

function explainExcluded({ enforced: { snapshot }, say }: Walk, call: ResourceCall, rule: string): void {
  if (isReview(call.info)) return;
  if (!isListOrWatch(call.info)) throw callerRefusal(call, excludedText(rule, snapshot.words));
  call.record.decision = "narrowed";
  say("this user agent is shown no objects");
}

/** A create of a cluster-scoped object is named by its body. By the name a shard owns it, or a namespace is frozen. */
function namedByBody(info: ResourceInfo, view: ResourceView, walk: Walk): ResourceInfo {
  if (!isNamedByBody(view, info)) return info;
  const { createdName } = walk.asked;
  if (createdName === "") dependsOn(walk, "the name of the object decides");
  return { ...info, name: createdName };
}

function mayBeAboutOperator({ enforced: { snapshot } }: Walk, info: ResourceInfo, view: ResourceView): boolean {
  if (eventWriteOf(snapshot, info) === undefined) return false;
  return view.ownershipOf(info.namespace) !== "own" || view.labelFilter !== undefined || isFrozen(view, info.namespace);
}

function narrowText(view: ResourceView, { namespace }: ResourceInfo): string {
  if (view.labelFilter !== undefined) return `shows the objects with the labels ${view.labelFilter.labelSelector}`;
  return namespace === "" ? "shows what this subset owns or retains" : "shows an empty answer, since another subset owns it";
}
