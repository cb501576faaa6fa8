// The last layer, for everything but reviews (conversions, GETs, unknown versions): the operator beside this
// proxy answers.
import type { OperatorClient } from "./operator-client.ts";
import type { ReviewLayer } from "./review-call.ts";

export function operator(client: Pick<OperatorClient, "send">): ReviewLayer {
  return () => (call) => {
    call.record.result = "passed";
    return client.send(call);
  };
}
