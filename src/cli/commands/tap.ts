// `ctrlmesh tap`: the next requests of an operator, and what its sidecars did with them.
import { isRefused, requestText, TAP_FLAGS, tapRequests } from "../apps/tapped-requests.ts";
import type { Call, Command } from "../frame/command.ts";
import { EXIT } from "../frame/exit.ts";
import { columns } from "../frame/output.ts";

export const TAP: Command = {
  name: "tap",
  args: "APP",
  maxArgs: 1,
  summary: "the next requests of an operator, and what its sidecars did with them",
  flags: {
    ...TAP_FLAGS,
    refused: { type: "boolean", help: "only requests that the API server did not answer" },
    verb: { type: "string", value: "VERB", help: "only requests with this verb, for example delete" },
  },
  async run(call: Call) {
    const { flags, output } = call;
    const verb = flags.text("verb");
    const requests = (await tapRequests(call)).filter(
      (request) => (!flags.isSet("refused") || isRefused(request)) && (verb === undefined || request.verb === verb),
    );
    const rows = requests.map((request) => [
      request.pod,
      String(request.code),
      `${Math.round(request.seconds * 1_000)} ms`,
      [request.decision, request.reason, request.rule].filter((part) => part !== undefined).join(" "),
      requestText(request),
    ]);
    output.data(
      "RequestList",
      { items: requests },
      rows.length === 0 ? [] : columns([["POD", "CODE", "TIME", "DECISION", "REQUEST"], ...rows]),
    );
    if (rows.length === 0) output.hint("no such request has ended in this time");
    return EXIT.ok;
  },
};
