// `ctrlmesh top`: which requests an operator sends most, by verb and resource.
import { isRefused, requestText, TAP_FLAGS, type TappedRequest, tapRequests } from "../apps/tapped-requests.ts";
import type { Call, Command } from "../frame/command.ts";
import { EXIT } from "../frame/exit.ts";
import { printTable } from "../frame/table.ts";

export const TOP: Command = {
  name: "top",
  args: "APP",
  maxArgs: 1,
  summary: "which requests an operator sends most, by verb and resource",
  flags: TAP_FLAGS,
  async run(call: Call) {
    const groups = Map.groupBy(await tapRequests(call), (request) => requestText({ ...request, namespace: "", name: "" }));
    const items = [...groups].map(([request, of]) => summaryOf(request, of)).sort((a, b) => b.count - a.count);
    printTable(call.output, {
      kind: "RequestSummaryList",
      items,
      columns: {
        REQUESTS: ({ count }) => count,
        REFUSED: ({ refused }) => refused,
        MEDIAN: ({ medianMs }) => `${medianMs} ms`,
        PODS: ({ pods }) => pods,
        REQUEST: ({ request }) => request,
      },
      ifNone: "no request has ended in this time",
    });
    return EXIT.ok;
  },
};

function summaryOf(request: string, of: readonly TappedRequest[]) {
  const times = of.map(({ seconds }) => seconds).sort((a, b) => a - b);
  const medianMs = Math.round((times[Math.floor(times.length / 2)] ?? 0) * 1_000);
  return {
    request,
    count: of.length,
    refused: of.filter(isRefused).length,
    medianMs,
    pods: new Set(of.map(({ pod }) => pod)).size,
  };
}
