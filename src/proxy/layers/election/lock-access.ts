// Asks the API server, in the caller's own name, whether it may use its lock under the name upstream
// (SelfSubjectAccessReview). Invariant: never throws and never waits longer than ten seconds; no credential is kept. Called by
// the lock review, beside the request that it is about.
import { z } from "zod";
import type { Clock } from "../../../base/clock.ts";
import { plainText } from "../../../base/plain-text.ts";
import { parseRequestInfo, type ResourceInfo, type ResourceVerb } from "../../../kube/request-info.ts";
import { identityHeaders } from "../../api-server/headers.ts";
import type { Call, Handler } from "../../http/handler.ts";
import { readBody } from "../../http/read-body.ts";

const PATH = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
const ASK_TIMEOUT_MS = 10_000;
const MAX_ANSWER_BYTES = 64 * 1024;
/** Of the reason, which goes into a condition. */
const MAX_REASON_CHARS = 256;

const answerSchema = z.object({
  status: z.object({ allowed: z.boolean(), reason: z.string().default("").transform(shortReason) }),
});

/** Who asks, how, and when it is given up. */
export interface AccessQuestion {
  readonly caller: Call["headers"];
  readonly ask: Handler;
  readonly clock: Clock;
}

/** What is asked about; `name` is the lock's name upstream. */
export interface LockAccess extends Pick<ResourceInfo, "group" | "version" | "resource" | "namespace"> {
  readonly name: string;
  readonly verb: ResourceVerb;
}

export type AccessAnswer = z.output<typeof answerSchema>["status"];

/** The API server's answer; undefined if it gives none. */
export async function askAccess(access: LockAccess, { caller, ask, clock }: AccessQuestion): Promise<AccessAnswer | undefined> {
  const timeout = new AbortController();
  const givenUp = Promise.withResolvers<undefined>();
  const timer = clock.after(ASK_TIMEOUT_MS, () => {
    givenUp.resolve(undefined);
    timeout.abort(new Error("access review: no answer within ten seconds"));
  });
  // A review is a write, which goes on for a while when its caller goes: the signal alone is no bound.
  const answer = await Promise.race([answerTo(access, caller, ask, timeout.signal), givenUp.promise]);
  timer.cancel();
  return answer;
}

async function answerTo(
  access: LockAccess,
  caller: Call["headers"],
  ask: Handler,
  signal: AbortSignal,
): Promise<AccessAnswer | undefined> {
  const info = parseRequestInfo("POST", PATH);
  try {
    const reply = await ask({
      method: "POST",
      target: PATH,
      info,
      headers: { ...identityHeaders(caller), "content-type": "application/json", accept: "application/json" },
      body: Buffer.from(JSON.stringify(reviewOf(access))),
      signal,
      record: { info, decision: "forwarded", lock: true },
    });
    const body = await readBody(reply.body, MAX_ANSWER_BYTES);
    if (reply.status !== 200 && reply.status !== 201) return undefined;
    return answerSchema.parse(JSON.parse(Buffer.from(body).toString("utf8"))).status;
  } catch {
    return undefined;
  }
}

function shortReason(reason: string): string {
  return plainText(reason, MAX_REASON_CHARS);
}

// A create has no name in its path: rules with resourceNames never allow it, and must not seem to.
function reviewOf({ verb, name, ...place }: LockAccess): object {
  const resourceAttributes = { ...place, verb, ...(verb === "create" ? {} : { name }) };
  return { kind: "SelfSubjectAccessReview", apiVersion: "authorization.k8s.io/v1", spec: { resourceAttributes } };
}
