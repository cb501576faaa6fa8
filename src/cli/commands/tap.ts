// `ctrlmesh tap`: the next requests of an operator, and what its sidecars did with them.
import { isRefused, requestText, TAP_FLAGS, type TappedRequest, tapRequests } from "../apps/tapped-requests.ts";
import { type Call, type Command, type FlagValues, usageError } from "../frame/command.ts";
import { EXIT } from "../frame/exit.ts";
import { printTable } from "../frame/table.ts";

export const TAP: Command = {
  name: "tap",
  args: "APP",
  maxArgs: 1,
  summary: "the next requests of an operator, and what its sidecars did with them",
  flags: {
    ...TAP_FLAGS,
    refused: { type: "boolean", help: "only requests that the sidecar refused" },
    verb: { type: "string", value: "VERB", help: "only requests with this verb, for example delete" },
  },
  async run(call: Call) {
    const { flags, output } = call;
    const verb = verbOf(flags);
    const isMeant = (request: TappedRequest) =>
      (!flags.isSet("refused") || isRefused(request)) && (verb === undefined || request.verb === verb);
    printTable(output, {
      kind: "RequestList",
      items: (await tapRequests(call)).filter(isMeant),
      columns: {
        POD: ({ pod }) => pod,
        CODE: ({ code }) => code,
        TIME: ({ seconds }) => `${Math.round(seconds * 1_000)} ms`,
        DECISION: ({ decision, reason, rule }) => [decision, reason, rule].filter((part) => part !== undefined).join(" "),
        REQUEST: requestText,
      },
      ifNone: "no such request has ended in this time",
    });
    return EXIT.ok;
  },
};

const VERBS = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"];

function verbOf(flags: FlagValues): string | undefined {
  const verb = flags.text("verb");
  if (verb !== undefined && !VERBS.includes(verb)) throw usageError(`--verb: "${verb}" is none of: ${VERBS.join(", ")}`);
  return verb;
}
