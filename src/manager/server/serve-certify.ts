// One call of Certify, from its metadata to its answer. Invariant: nothing of the request is read before the
// caller is identified, and a pod that asks too often has to come back later.
import { type ServerReadableStream, type sendUnaryData, status } from "@grpc/grpc-js";
import type { ClientPace } from "../../base/client-pace.ts";
import type { Clock } from "../../base/clock.ts";
import type { CertificateReplyMessage, CertificateRequestMessage } from "../../wire/messages.ts";
import { podKey } from "../facts/pod-key.ts";
import type { Certification, Certifier } from "../identity/certifier.ts";
import { hostOf, type Identify } from "../identity/identify.ts";
import type { Rejections } from "../identity/rejections.ts";
import type { PodIdentity } from "../identity/token-reviewer.ts";

export type CertifyCall = readonly [
  call: ServerReadableStream<CertificateRequestMessage, CertificateReplyMessage>,
  callback: sendUnaryData<CertificateReplyMessage>,
];

export interface CertifyDeps {
  readonly identify: Identify;
  readonly certify: Certifier;
  readonly rejections: Rejections;
  /** Paces each pod. */
  readonly calls: Pick<ClientPace, "allow">;
  readonly clock: Clock;
}

// The request comes with the call.
const REQUEST_TIMEOUT_MS = 10_000;

/** @param deps undefined without mesh identity */
export function serveCertify([call, callback]: CertifyCall, deps: CertifyDeps | undefined): void {
  let isAnswered = false;
  const answer = (code: number, details: string) => {
    if (isAnswered) return;
    isAnswered = true;
    callback({ code, details });
  };
  call.on("error", () => answer(status.CANCELLED, "the call has failed"));
  if (deps === undefined) {
    answer(status.UNIMPLEMENTED, "this manager has no mesh identity (CTRLMESH_IDENTITY=none)");
    return;
  }
  const { identify, certify, rejections, calls, clock } = deps;

  const take = async (caller: PodIdentity, request: CertificateRequestMessage) => {
    const result: Certification = await certify(caller, request.publicKey);
    if (result.kind === "wait") return answer(status.UNAVAILABLE, result.message);
    if (result.kind === "refuse") {
      rejections.reject(result.reason, podKey(caller), result.message);
      return answer(result.reason === "bad-request" ? status.INVALID_ARGUMENT : status.PERMISSION_DENIED, result.message);
    }
    if (isAnswered) return;
    isAnswered = true;
    callback(null, result.reply);
  };
  const serve = async () => {
    const verdict = await identify(call.metadata, call.getPeer());
    if (verdict.kind === "wait") return answer(status.UNAVAILABLE, verdict.message);
    if (verdict.kind === "refuse") return answer(status.UNAUTHENTICATED, verdict.message);
    if (!calls.allow(podKey(verdict.pod), 1)) return answer(status.RESOURCE_EXHAUSTED, "the pod asks for certificates too often");
    const due = clock.after(REQUEST_TIMEOUT_MS, () => answer(status.DEADLINE_EXCEEDED, "no request came"));
    call.once("data", (request: CertificateRequestMessage) => {
      due.cancel();
      call.pause();
      take(verdict.pod, request).catch(fail);
    });
    call.once("close", () => due.cancel());
  };
  const fail = () => answer(status.INTERNAL, `certifying a key from ${hostOf(call.getPeer())} failed`);
  serve().catch(fail);
}
