// The condition TrafficIntercepted: whether every pod that runs has the proxy between itself and the API server. Pure.
import { barePods, countText, type StatusFacts, type Verdict } from "./facts.ts";

export function interceptedVerdict({ pods }: Pick<StatusFacts, "pods">): Verdict<"TrafficIntercepted"> {
  const bare = barePods({ pods });
  const [first] = bare;
  if (first !== undefined) {
    const who = bare.length === 1 ? `pod ${first.name} carries` : `${bare.length} running pods, pod ${first.name} first, carry`;
    const message = `${who} no proxy and may write everything: restart to have the proxy injected`;
    return { status: "False", reason: "PodsWithoutProxy", message };
  }
  const meshed = pods.filter(({ proxy, ended }) => proxy === "own" && !ended).length;
  return { status: "True", reason: "AllInjected", message: `${countText(meshed, "pod")} with the proxy, none without` };
}
