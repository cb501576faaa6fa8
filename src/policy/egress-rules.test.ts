import { describe, expect, it } from "vitest";
import { egressRequest, egressRule } from "../../test/support/policies.ts";
import { createEgressRules } from "./egress-rules.ts";
import type { EgressRule } from "./policy.ts";

const ruleNames = (rules: readonly EgressRule[], line: string) => {
  const { refusedBy, decisions } = createEgressRules(rules).judge(egressRequest(line));
  return {
    refusedBy: refusedBy?.origin.rule,
    decisions: decisions.map(({ rule, decision }) => `${rule.origin.rule} ${decision}`),
  };
};
const isOpen = (rules: readonly EgressRule[], line: string) => ruleNames(rules, line).refusedBy === undefined;
type HostMatch = EgressRule["hosts"][number];
const A: EgressRule["hosts"] = [{ host: "a.example" }];

describe("hosts of other servers", () => {
  it.each<[HostMatch, string, boolean]>([
    [{ host: "a.example" }, "GET http://a.example/x", true],
    [{ host: "A.Example" }, "GET http://a.example/x", true],
    [{ host: "a.example" }, "GET http://b.a.example/x", false],
    [{ host: "a.example" }, "CONNECT a.example:8443", true],
    [{ host: "a.example", port: 443 }, "CONNECT a.example:443", true],
    [{ host: "a.example", port: 443 }, "CONNECT a.example:8443", false],
    [{ host: "[2001:db8::1]" }, "CONNECT [2001:db8::1]:443", true],
    [{ regex: "^[a-z]+[.]example$" }, "CONNECT a.example:443", true],
    [{ regex: "^[a-z]+[.]example:443$" }, "CONNECT a.example:443", true],
    [{ regex: "^[a-z]+[.]example$" }, "CONNECT a.example.org:443", false],
    [{ regex: "a[.]example" }, "CONNECT a.example.org:443", true],
  ])("%j: %s: %s", (match, line, expected) => {
    expect(isOpen([egressRule("Allow", [match])], line)).toBe(expected);
    expect(isOpen([egressRule("Deny", [match])], line)).toBe(!expected);
  });

  it.each<[readonly string[], string, boolean]>([
    [[], "POST http://a.example/", true],
    [["*"], "CONNECT a.example:443", true],
    [["GET", "HEAD"], "GET http://a.example/", true],
    [["GET", "HEAD"], "POST http://a.example/", false],
    [["GET"], "CONNECT a.example:443", false],
    [["CONNECT"], "CONNECT a.example:443", true],
  ])("methods %j: %s: %s", (methods, line, expected) => {
    expect(isOpen([egressRule("Allow", A, { methods })], line)).toBe(expected);
  });
});

describe("a rule with Deny about an address", () => {
  const refusing = (rules: readonly EgressRule[], line: string, ...addresses: string[]) =>
    addresses.map((address) =>
      createEgressRules(rules)
        .refusing(egressRequest(line), address)
        .map(({ origin }) => origin.rule),
    );
  const deny = (host: string, changes: Parameters<typeof egressRule>[2] & { readonly port?: number } = {}) => {
    const { port, ...rest } = changes;
    return egressRule("Deny", [port === undefined ? { host } : { host, port }], { name: "deny", ...rest });
  };
  const NAME = "CONNECT 203.0.113.5.nip.io:443";

  it.each([
    ["203.0.113.5", "203.0.113.5"],
    ["203.0.113.5", "::ffff:203.0.113.5"],
    ["203.0.113.5", "64:ff9b::203.0.113.5"],
    ["203.0.113.5", "64:ff9b::cb00:7105"],
    ["64:ff9b::cb00:7105", "203.0.113.5"],
    ["2001:db8::1", "2001:db8:0::0:1"],
  ])("%s refuses a name with the address %s (D16)", (host, address) => {
    expect(refusing([deny(host)], NAME, address)).toEqual([["deny"]]);
  });

  it("refuses no name with another address, and no other port or method", () => {
    expect(refusing([deny("203.0.113.5")], NAME, "203.0.113.6", "64:ff9b::203.0.113.6", "::5")).toEqual([[], [], []]);
    expect(refusing([deny("203.0.113.5", { port: 443 })], NAME, "203.0.113.5")).toEqual([["deny"]]);
    expect(refusing([deny("203.0.113.5", { port: 8443 })], NAME, "203.0.113.5")).toEqual([[]]);
    expect(refusing([deny("203.0.113.5", { methods: ["GET"] })], NAME, "203.0.113.5")).toEqual([[]]);
  });

  it("is not found again for a request that names the address, whose name was judged", () => {
    expect(refusing([deny("203.0.113.5")], "CONNECT 203.0.113.5:443", "203.0.113.5")).toEqual([[]]);
  });

  it("is a plain address: expressions and names are about the text of the host, and Allow allows no name", () => {
    const others = [
      egressRule("Deny", [{ regex: "^[0-9.]+$" }, { regex: "^203" }]),
      egressRule("Deny", [{ host: "a.example" }]),
      egressRule("Allow", [{ host: "203.0.113.5" }]),
    ];
    expect(refusing(others, NAME, "203.0.113.5")).toEqual([[]]);
    expect(isOpen(others.slice(2), NAME)).toBe(false);
  });
});

describe("the rules together", () => {
  const allow = egressRule("Allow", A, { name: "allow" });
  const deny = egressRule("Deny", A, { name: "deny" });

  it("without rules, or without a rule with Allow, leave open what no rule denies", () => {
    expect(isOpen([], "GET http://b.example/")).toBe(true);
    expect(isOpen([deny], "GET http://b.example/")).toBe(true);
  });

  it("refuse what no rule allows, and name the list", () => {
    expect(ruleNames([allow], "GET http://b.example/")).toEqual({ refusedBy: "allow", decisions: ["allow deny"] });
  });

  it("refuse what one rule denies and another one allows", () => {
    expect(ruleNames([allow, deny], "GET http://a.example/")).toEqual({
      refusedBy: "deny",
      decisions: ["allow pass", "deny deny"],
    });
  });

  it("allow what one of several lists allows", () => {
    const other = egressRule("Allow", [{ host: "b.example" }], { name: "other" });
    expect(isOpen([allow, other], "GET http://b.example/")).toBe(true);
  });

  it("count in the shadow and refuse nothing", () => {
    const [list, ban] = [{ ...allow, mode: "Shadow" } as const, { ...deny, mode: "Shadow" } as const];
    expect(ruleNames([list, ban], "GET http://b.example/")).toEqual({ refusedBy: undefined, decisions: ["allow deny"] });
    expect(ruleNames([list, ban], "GET http://a.example/")).toEqual({
      refusedBy: undefined,
      decisions: ["allow pass", "deny deny"],
    });
    expect(createEgressRules([list]).isAllowList).toBe(false);
  });

  it("in the shadow say what they would do beside the enforced ones", () => {
    const shadow = { ...egressRule("Allow", [{ host: "b.example" }], { name: "shadow" }), mode: "Shadow" } as const;
    expect(ruleNames([allow, shadow], "GET http://a.example/").decisions).toEqual(["allow pass"]);
    expect(ruleNames([allow, shadow], "GET http://b.example/")).toEqual({
      refusedBy: "allow",
      decisions: ["shadow pass", "allow deny"],
    });
  });
});
