// `ctrlmesh top`: which requests an operator sends most, by verb and resource.
import { summaries, TAP_FLAGS, tapRequests } from "../apps/tapped-requests.ts";
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
    printTable(call.output, {
      kind: "RequestSummaryList",
      items: summaries(await tapRequests(call)),
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
