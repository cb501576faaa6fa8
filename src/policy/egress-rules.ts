// Decides which other servers a pod may call. Pure. Invariant: every rule that matches applies. Without an
// enforced rule with Allow, only a rule with Deny refuses requests. A rule with Deny about an address holds for
// every name that has the address.
import { isAddress, reachedAddress } from "../base/host-name.ts";
import type { EgressRule } from "./policy.ts";
import type { EgressTarget, PolicyRequest } from "./policy-request.ts";
import { compilePattern } from "./text-match.ts";

interface EgressRuleDecision {
  readonly rule: EgressRule;
  readonly decision: "pass" | "deny";
}

export interface EgressDecision {
  /** Undefined if the request may pass. */
  readonly refusedBy: EgressRule | undefined;
  /** The decision of each rule, including those in the shadow. */
  readonly decisions: readonly EgressRuleDecision[];
}

const ALL = "*";

export function createEgressRules(rules: readonly EgressRule[]) {
  const compiled = rules.map((rule) => {
    const hosts = rule.hosts.map(compileHost);
    const matches = (target: EgressTarget) => hosts.some((matchesHost) => matchesHost(target));
    return { rule, matches, addresses: rule.effect === "Deny" ? rule.hosts.flatMap(addressOf) : [] };
  });
  const allowing = (mode: EgressRule["mode"]) => rules.filter((rule) => rule.effect === "Allow" && rule.mode === mode);
  const [enforced, shadow] = [allowing("Enforce"), allowing("Shadow")];
  return {
    /** An enforced rule with Allow exists, so a server that no rule names is refused. */
    isAllowList: enforced.length > 0,
    judge({ egress, method }: PolicyRequest): EgressDecision {
      if (egress === undefined || compiled.length === 0) return { refusedBy: undefined, decisions: [] };
      const matching = compiled.flatMap(({ rule, matches }) => (isMethod(rule, method) && matches(egress) ? [rule] : []));
      const decisions = matching.map(
        (rule): EgressRuleDecision => ({ rule, decision: rule.effect === "Allow" ? "pass" : "deny" }),
      );
      // If no rule allows the request, the first rule with Allow refuses it. A rule in the shadow decides as
      // if it were enforced too.
      const isAllowed = (modes: readonly string[]) =>
        matching.some(({ effect, mode }) => effect === "Allow" && modes.includes(mode));
      const [missing] = isAllowed(["Enforce"]) ? [] : enforced;
      const [shadowMissing] = isAllowed(["Enforce", "Shadow"]) ? [] : shadow;
      for (const rule of [missing, shadowMissing]) if (rule !== undefined) decisions.push({ rule, decision: "deny" });
      const denying = decisions.find(({ rule, decision }) => rule.mode === "Enforce" && decision === "deny");
      return { refusedBy: denying?.rule, decisions };
    },
    /** The rules with Deny that name this address of the server, and that do not match the request by its host. */
    refusing({ egress, method }: PolicyRequest, address: string): readonly EgressRule[] {
      if (egress === undefined) return [];
      const reached = reachedAddress(address);
      return compiled.flatMap(({ rule, matches, addresses }) => {
        const isNamed = addresses.some(({ host, port }) => host === reached && (port ?? egress.port) === egress.port);
        return isNamed && isMethod(rule, method) && !matches(egress) ? [rule] : [];
      });
    },
  };
}

function isMethod({ methods }: EgressRule, method: string): boolean {
  return methods.length === 0 || methods.includes(ALL) || methods.includes(method);
}

/** None for a name, and for an expression, which is about the text of the host. */
function addressOf(match: EgressRule["hosts"][number]): { readonly host: string; readonly port?: number }[] {
  if ("regex" in match) return [];
  const host = plainHost(match.host);
  return isAddress(host) ? [{ ...match, host: reachedAddress(host) }] : [];
}

function plainHost(host: string): string {
  return host.toLowerCase().replace(/^\[(.*)\]$/, "$1");
}

function compileHost(match: EgressRule["hosts"][number]): (target: EgressTarget) => boolean {
  if ("regex" in match) {
    const matches = compilePattern(match.regex);
    return ({ host, port }) => matches(host) || matches(`${host}:${port}`);
  }
  const wanted = plainHost(match.host);
  return ({ host, port }) => host === wanted && (match.port === undefined || match.port === port);
}
