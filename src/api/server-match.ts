// Fields about requests to other servers: hosts, URLs, methods, texts. Invariant: a value that no request can
// match is refused, so that no mistake makes a rule without effect.
import { optional, z } from "zod";
import { canonicalHost } from "../base/host-name.ts";
import { withChecks } from "./extensions.ts";
import { textUpTo } from "./fields.ts";
import { regexSchema } from "./regex.ts";
import { type Finding, noDuplicates, withRules } from "./rule.ts";
import { matchList } from "./traffic-rules.ts";

export interface Server {
  /** As the proxy sees it: lower case, addresses in their usual form without brackets, no final dots. */
  readonly host: string;
  readonly port?: number;
}

const HOST_AND_PORT = /^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::(\d{1,5}))?$/i;

/** Reads `host` or `host:port`; undefined for any other text. */
export function parseServer(text: string): Server | undefined {
  const [, host = "", port] = HOST_AND_PORT.exec(text) ?? [];
  const plain = canonicalHost(host);
  const number = port === undefined ? undefined : Number(port);
  if (plain === undefined || (number !== undefined && (number < 1 || number > 65_535))) return undefined;
  return { host: plain, ...(number === undefined ? {} : { port: number }) };
}

/** HTTPS clients open a tunnel with the method CONNECT: what is inside is encrypted. */
const methodSchema = z.enum(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "*"]);
export const anyMethodSchema = methodSchema;
export const methodsSchema = withRules(matchList(methodSchema, 8), noDuplicates);

const ABSOLUTE_URL = /^https?:\/\/(\*|[^\s/?#@*]+([/?][^\s#]*)?)$/;

export const urlSchema = withRules(
  textUpTo(2_048).regex(ABSOLUTE_URL, {
    error: 'must be a URL such as "https://example.com/v1", "https://example.com/*" for everything below, or "https://*"',
  }),
  urlProblems,
);

function* urlProblems(value: unknown): Iterable<Finding> {
  if (typeof value !== "string" || !ABSOLUTE_URL.test(value)) return;
  const [, authority = "", rest = ""] = /^https?:\/\/([^/?]*)(.*)$/.exec(value) ?? [];
  const problem = (message: string): Finding => ({ path: [], value, message });
  if (authority === "*") return;
  if (parseServer(authority) === undefined) yield problem(`${JSON.stringify(authority)} is not host or host:port`);
  if (rest.replace(/\/\*$/, "").includes("*")) yield problem('matches nothing: "*" must be the whole last segment of the path');
  if (/\/(\.|%2e){1,2}([/?]|$)/i.test(rest)) yield problem('matches nothing: no request has a segment "." or ".."');
}

const ONE_OF_BOTH = {
  rule: "has(self.exact) != has(self.regex)",
  message: "set either exact or regex",
  holds: ({ exact, regex }: Readonly<Record<string, unknown>>) => (exact === undefined) !== (regex === undefined),
};

function textMatchSchema(exact: z.ZodType<string>, whole: string, anywhere: string) {
  return withChecks(
    z.strictObject({
      exact: optional(exact).describe(whole),
      regex: optional(regexSchema).describe(
        `A regular expression in RE2 syntax. It may match anywhere in ${anywhere}, so anchor it with ^ and $.`,
      ),
    }),
    ONE_OF_BOTH,
  );
}

const isServer = (text: string) => parseServer(text) !== undefined;

export const HOST_FORM = 'must be a host such as "example.com", "example.com:443" or "[2001:db8::1]"';

/** 253 characters of a name, and a port. */
export const hostMatchSchema = textMatchSchema(
  z.string().min(1).max(259).refine(isServer, { error: HOST_FORM }),
  "The whole host, with or without a port. Without one, every port matches.",
  "host or host:port",
);

export const pathMatchSchema = textMatchSchema(
  textUpTo(512).regex(/^\/[^?#\s]*$/, { error: 'must be a path without a query, such as "/v1/items"' }),
  "The whole path.",
  "the path",
);

export const headerNameSchema = textUpTo(256).regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/, { error: "must be the name of a header" });
