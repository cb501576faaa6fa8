// The condition TrafficIntercepted: whether every pod that runs has the proxy between itself and the API server. Pure.
import { countText, type StatusFacts, type Verdict } from "./facts.ts";

export function interceptedVerdict({ pods }: Pick<StatusFacts, "pods">): Verdict<"TrafficIntercepted"> {
  const bare = pods.filter(({ proxy, running }) => running && proxy === "none");
  const [first] = bare;
  if (first !== undefined) {
    const what =
      bare.length === 1 ? "1 running pod carries no proxy and sees" : `${bare.length} running pods carry no proxy and see`;
    const message = `${what} everything, ${first.name}${bare.length === 1 ? "" : " first"}: restart to have the proxy injected`;
    return { status: "False", reason: "PodsWithoutProxy", message };
  }
  const meshed = pods.filter(({ proxy, ended }) => proxy === "own" && !ended).length;
  return { status: "True", reason: "AllInjected", message: `${countText(meshed, "pod")} with the proxy, none without` };
}
