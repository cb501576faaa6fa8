// What the proxy would do with a request, stage by stage, in the order of the layers (outbound/stack.ts). Nothing is
// sent, charged or remembered. Invariant: each refusal is made by the function of the layer that would refuse, so
// code, reason and text are those that the operator would get (test/fuzz/explain.test.ts holds both together).
import { StatusError } from "../../kube/status.ts";
import type { Enforced } from "../../mesh/ownership/enforced.ts";
import { subsetDisplayName } from "../../mesh/ownership/words.ts";
import { type Call, createRecord } from "../call/call.ts";
import type { LockGate } from "../outbound/election/lock-gate.ts";
import { enforcedNow, type Session } from "../session/session.ts";
import type { AskedRequest } from "./asked-request.ts";
import { explainCaller, explainGate, explainLock } from "./explain-lock.ts";
import { explainOwnership } from "./explain-ownership.ts";
import { type ExplainPolicies, explainFaults, explainLimits } from "./explain-policies.ts";
import type { Outcome, Walk } from "./walk.ts";

export interface ExplainDeps extends ExplainPolicies {
  readonly session: Pick<Session, "current">;
  readonly gate: Pick<LockGate, "closedFor">;
}

export interface Explanation extends Outcome {
  readonly app: string;
  readonly subset: string;
  /** Of the routes that this proxy enforces. */
  readonly version: number;
  readonly request: string;
  readonly steps: readonly { readonly stage: string; readonly says: string }[];
}

type Stage = readonly [name: string, explain: (walk: Walk, deps: ExplainDeps) => void];

const STAGES: readonly Stage[] = [
  ["caller", explainCaller],
  ["lock", explainLock],
  ["faults", explainFaults],
  ["ownership", explainOwnership],
  ["lock-gate", explainGate],
  ["limits", explainLimits],
];

/** @throws StatusError if the proxy has no routes yet */
export function explainRequest(asked: AskedRequest, deps: ExplainDeps): Explanation {
  const enforced = enforcedNow(deps.session);
  const { snapshot } = enforced;
  const steps: { stage: string; says: string }[] = [];
  const walk = startWalk(asked, enforced);
  let refused: Outcome | undefined;
  for (const [stage, explain] of STAGES) {
    refused = refusalBy(() => explain({ ...walk, say: (says) => void steps.push({ stage, says }) }, deps), walk.call);
    if (refused === undefined) continue;
    steps.push({ stage, says: "refuses it" });
    break;
  }
  const { method, target } = walk.call;
  return {
    app: `${snapshot.app.namespace}/${snapshot.app.name}`,
    subset: subsetDisplayName(snapshot.subset),
    version: snapshot.version,
    request: `${method} ${target}`,
    ...outcomeOf(walk, refused),
    steps,
  };
}

function startWalk(asked: AskedRequest, enforced: Enforced): Omit<Walk, "say"> {
  const { info } = asked;
  const call: Call = {
    method: info.method,
    target: info.query.size === 0 ? info.path : `${info.path}?${info.query}`,
    info,
    headers: { "user-agent": asked.userAgent },
    body: null,
    signal: new AbortController().signal,
    record: createRecord(info),
  };
  return { asked, call, enforced, unknowns: [] };
}

/** Undefined if the stage lets the request pass. */
function refusalBy(explain: () => void, { record }: Call): Outcome | undefined {
  try {
    explain();
    return undefined;
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
    const { decision, reason } = record;
    const rule = record.rule === undefined ? {} : { rule: record.rule };
    return { decision, ...(reason !== undefined && { reason }), ...rule, code: error.status.code, message: error.message };
  }
}

function outcomeOf({ call: { record }, unknowns }: Pick<Walk, "call" | "unknowns">, refused: Outcome | undefined): Outcome {
  // A stage before this refusal may refuse too, depending on an unknown, and then with another answer.
  if (unknowns.length > 0)
    return { decision: "depends", message: [...unknowns, ...(refused ? [refused.message] : [])].join("; then ") };
  if (refused !== undefined) return refused;
  const { decision, reason, warning } = record;
  const message = warning ?? (decision === "narrowed" ? "the answer has what this subset owns" : "goes to the API server");
  return { decision, ...(reason !== undefined && { reason }), message };
}
