// A request on its way through the stages of an explanation.
import type { Enforced } from "../../mesh/ownership/enforced.ts";
import type { Call, CallRecord, DecisionReason } from "../call/call.ts";
import type { AskedRequest } from "./asked-request.ts";

export interface Walk {
  readonly asked: AskedRequest;
  /** It is never sent. Its record takes the notes of the layers' own functions. */
  readonly call: Call;
  readonly enforced: Enforced;
  /** What decides and is not in the request line: so far, since stages add to it. */
  readonly unknowns: string[];
  /** Adds a sentence of this stage. */
  say(text: string): void;
}

export interface Outcome {
  /** As in metrics and the access log; "depends": the request line alone does not decide. */
  readonly decision: CallRecord["decision"] | "depends";
  readonly reason?: DecisionReason;
  /** The rule of a policy that refuses: OBJECT/RULE. */
  readonly rule?: string;
  /** The HTTP status of a refusal. */
  readonly code?: number;
  readonly message: string;
}

/** Notes something that decides and that the request line does not have. */
export function dependsOn({ unknowns, say }: Walk, unknown: string): void {
  unknowns.push(unknown);
  say(unknown);
}
