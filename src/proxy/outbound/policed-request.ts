// The client's call as policies see it. The layers `fault` and `limit` ask for it, so that both judge the same
// request. Invariant: a rule about everything spares the locks by which an operator stays leader.
import { isLeaseIn, type PolicyRequest, policyRequestOf } from "../../policy/policy-request.ts";
import { type Call, clientsRecord } from "../call/call.ts";
import { userOf } from "../policies/user-of.ts";
import type { Session } from "../session/session.ts";

/** Of a call that the proxy sends for a client's one, the client's. It is read once as long as nothing has changed. */
export function policedRequest({ info: sent, record, headers }: Call, { current }: Pick<Session, "current">): PolicyRequest {
  const own = clientsRecord(record);
  const { info = sent, policed } = own;
  // Any elector of the pod may use a lease there, also one that the app's spec does not name.
  const isLock = own.lock || (current !== undefined && isLeaseIn(current.snapshot.podNamespace, info));
  if (policed?.info === info && policed.isLock === isLock) return policed.request;
  const request = {
    ...policyRequestOf(info, isLock, () => userOf(headers)),
    population: () => own.population?.(), // the layer `census` lies between the two
  };
  own.policed = { info, isLock, request };
  return request;
}
