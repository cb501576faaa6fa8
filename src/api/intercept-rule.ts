// One rule of a CircuitBreaker about the hosts that its pods may call. Invariant: each field of KusionStack's
// kind is here with its spelling.
import { z } from "zod";
import type { Immutable } from "../base/immutable.ts";
import { MAX_REGEX_LENGTH, regexProblems } from "./regex.ts";
import { type Finding, fieldAt, itemsOf, withRules } from "./rule.ts";
import { methodsSchema, noDuplicates, parseServer } from "./server-match.ts";
import { ruleNameSchema } from "./traffic-rules.ts";

export const interceptRuleSchema = withRules(
  z.strictObject({
    name: ruleNameSchema.describe("Name of the rule, in answers and metrics."),
    interceptType: z
      .enum(["Whitelist", "Blacklist"])
      .describe(
        "Whitelist: as long as there is such a rule, requests that match none of them are refused. Blacklist: requests that match are refused, also those that a Whitelist names.",
      ),
    contentType: z
      .enum(["Normal", "Regexp"])
      .describe(
        "Normal: the contents are hosts. Regexp: they are regular expressions in RE2 syntax, which may match anywhere in host or host:port, so anchor them with ^ and $.",
      ),
    contents: withRules(z.array(z.string().min(1).max(MAX_REGEX_LENGTH)).min(1).max(128), noDuplicates).describe(
      "Hosts, with or without a port. Without one, every port matches.",
    ),
    methods: methodsSchema.describe(
      'HTTP methods, or "*" for all. HTTPS clients open a tunnel with the method CONNECT; the methods inside are encrypted and do not count.',
    ),
  }),
  contentProblems,
);

export type InterceptRule = Immutable<z.output<typeof interceptRuleSchema>>;

function* contentProblems(rule: unknown): Iterable<Finding> {
  const isRegex = fieldAt(rule, "contentType") === "Regexp";
  for (const [index, content] of itemsOf(fieldAt(rule, "contents")).entries()) {
    const problems = isRegex ? regexProblems(content) : hostProblems(content);
    for (const problem of problems) yield { ...problem, path: ["contents", index] };
  }
}

function* hostProblems(content: unknown): Iterable<Finding> {
  if (typeof content !== "string" || content === "" || parseServer(content) !== undefined) return;
  const hint = content.includes("*") ? '; a pattern needs contentType "Regexp"' : "";
  yield {
    path: [],
    value: content,
    message: `must be a host such as "example.com", "example.com:443" or "[2001:db8::1]"${hint}`,
  };
}
