// Decides which other servers a pod may call. Pure. Invariant: every rule that matches applies, and the
// present rules alone decide: without an enforced rule with Allow everything is open but for what a rule with
// Deny refuses. Called by the egress proxy for every request.
import type { EgressRule } from "./policy.ts";
import type { EgressTarget, PolicyRequest } from "./policy-request.ts";
import { compilePattern } from "./text-match.ts";

/** One rule's word about one request. */
export interface EgressWord {
  readonly rule: EgressRule;
  readonly decision: "pass" | "deny";
}

export interface EgressVerdict {
  /** The rule that refuses the request; undefined if it may pass. */
  readonly refusedBy: EgressRule | undefined;
  /** What each rule says, also in the shadow. */
  readonly words: readonly EgressWord[];
}

export interface EgressRules {
  judge(request: PolicyRequest): EgressVerdict;
  /** An enforced rule with Allow exists, so what no rule names is refused. */
  readonly isAllowList: boolean;
}

const ALL = "*";

interface Compiled {
  readonly rule: EgressRule;
  matches(target: EgressTarget): boolean;
}

export function createEgressRules(rules: readonly EgressRule[]): EgressRules {
  const compiled = rules.map((rule): Compiled => {
    const hosts = rule.hosts.map(compileHost);
    return { rule, matches: (target) => hosts.some((matches) => matches(target)) };
  });
  const allowing = (mode: EgressRule["mode"]) => rules.filter((rule) => rule.effect === "Allow" && rule.mode === mode);
  const [enforced, shadow] = [allowing("Enforce"), allowing("Shadow")];
  return {
    isAllowList: enforced.length > 0,
    judge({ egress, method }) {
      if (egress === undefined || compiled.length === 0) return { refusedBy: undefined, words: [] };
      const matching = compiled.flatMap(({ rule, matches }) => (isMethod(rule, method) && matches(egress) ? [rule] : []));
      const words = matching.map((rule): EgressWord => ({ rule, decision: rule.effect === "Allow" ? "pass" : "deny" }));
      // Nobody allows it: the first rule of the list says so. With the rules in the shadow enforced, they
      // would allow it as well.
      const isAllowed = (modes: readonly string[]) =>
        matching.some(({ effect, mode }) => effect === "Allow" && modes.includes(mode));
      const [missing] = isAllowed(["Enforce"]) ? [] : enforced;
      const [shadowMissing] = isAllowed(["Enforce", "Shadow"]) ? [] : shadow;
      for (const rule of [missing, shadowMissing]) if (rule !== undefined) words.push({ rule, decision: "deny" });
      const denying = words.find(({ rule, decision }) => rule.mode === "Enforce" && decision === "deny");
      return { refusedBy: denying?.rule, words };
    },
  };
}

function isMethod({ methods }: EgressRule, method: string): boolean {
  return methods.length === 0 || methods.includes(ALL) || methods.includes(method);
}

function compileHost(match: EgressRule["hosts"][number]): (target: EgressTarget) => boolean {
  if ("regex" in match) {
    const matches = compilePattern(match.regex);
    return ({ host, port }) => matches(host) || matches(`${host}:${port}`);
  }
  const wanted = match.host.toLowerCase().replace(/^\[(.*)\]$/, "$1");
  return ({ host, port }) => host === wanted && (match.port === undefined || match.port === port);
}
