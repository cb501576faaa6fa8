// The layers of the listener for the operator's webhooks, outermost first.
import type { ProcessContext } from "../../base/process-context.ts";
import type { NamedLayer } from "../http/compose-stack.ts";
import type { Reply } from "../http/handler.ts";
import { type AnswerDeps, route } from "./answer-review.ts";
import { knowPeer } from "./know-peer.ts";
import { type ObserveDeps, observe } from "./observe.ts";
import { operator } from "./operator-client.ts";
import { pace } from "./pace.ts";
import { read } from "./read.ts";
import { rescue } from "./rescue.ts";
import type { ReviewCall } from "./review-call.ts";

type ReviewStackDeps = AnswerDeps & ObserveDeps & Pick<ProcessContext, "log">;

export function reviewLayers(deps: ReviewStackDeps): readonly NamedLayer<ReviewCall, Reply>[] {
  return [
    // Outside of rescue, so that its answers are counted too.
    { name: "observe", layer: observe(deps) },
    { name: "rescue", layer: rescue(deps.log) },
    // Before anything of the body is read.
    { name: "know-peer", layer: knowPeer(deps.peers) },
    // Peers do not wait.
    { name: "pace", layer: pace(deps.clock) },
    { name: "read", layer: read() },
    { name: "route", layer: route(deps) },
    // Answers what is not a review.
    { name: "operator", layer: operator(deps.sendToOperator) },
  ];
}
