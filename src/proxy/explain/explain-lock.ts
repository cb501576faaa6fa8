// The stages "caller", "lock" and "lock-gate" of an explanation.
import { defaultOnly, excludedBy } from "../../mesh/ownership/callers.ts";
import { lockNameFor } from "../../mesh/ownership/lock.ts";
import { excludedText } from "../../mesh/ownership/words.ts";
import { isResourceCall } from "../call/call.ts";
import { checkCandidate } from "../outbound/election/lease-candidates.ts";
import { checkLeaseCollection } from "../outbound/election/lock-collection.ts";
import { checkGate, type LockGate } from "../outbound/election/lock-gate.ts";
import { touchByName, touchOf } from "../outbound/election/lock-names.ts";
import { foreignLock } from "../outbound/election/lock-object.ts";
import type { Walk } from "./walk.ts";

export function explainCaller({ call, enforced: { snapshot }, say }: Walk): void {
  if (call.headers["user-agent"] === "" && defaultOnly(snapshot).length > 0)
    say("some user agents are served by the default subset only, and none is named here");
  const rule = excludedBy(snapshot, call.headers["user-agent"] ?? "");
  if (rule === undefined) return;
  call.record.excludedBy = rule;
  say(excludedText(rule, snapshot.words));
}

export function explainLock({ asked: { createdName }, call, enforced: { snapshot }, say }: Walk): void {
  if (!isResourceCall(call)) return;
  const pathTouch = touchOf(snapshot, call.info);
  const touch = pathTouch.kind === "create" ? touchByName(snapshot, createdName, "own") : pathTouch;
  switch (touch?.kind) {
    case "none":
      checkCandidate(call, snapshot);
      break;
    case "other-subset":
      throw foreignLock(call, touch.name);
    case "own":
    case "selected":
      call.record.lock = true;
      say(`this is the lock of the operator; upstream it is ${lockNameFor(snapshot.lockName, snapshot.subset)}`);
      break;
    case "collection":
      if (call.info.verb === "deletecollection" && !touch.whole) checkLeaseCollection(call);
      say("locks of other subsets are left out");
      break;
    default:
    // A create of an object that is no lock.
  }
}

export function explainGate({ call }: Walk, { gate }: { readonly gate: Pick<LockGate, "closedFor"> }): void {
  checkGate(call, gate);
}
