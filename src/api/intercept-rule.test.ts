import { describe, expect, it } from "vitest";
import { policyProblemsOf, sampleCircuitBreaker } from "../../test/support/traffic-objects.ts";

const RULE = "spec.trafficInterceptRules[0]";
const normal = { name: "inside", interceptType: "Whitelist", contentType: "Normal", contents: ["example.com"], methods: ["*"] };
const problems = (...rules: object[]) =>
  policyProblemsOf("CircuitBreaker", sampleCircuitBreaker({}, { rateLimitings: undefined, trafficInterceptRules: rules }));
const withContents = (contentType: string, ...contents: string[]) => problems({ ...normal, contentType, contents });

describe("a rule of trafficInterceptRules", () => {
  it("lists hosts, with or without a port, or expressions", () => {
    expect(withContents("Normal", "example.com", "Example.com:443", "10.0.0.1", "[2001:db8::1]:443")).toEqual([]);
    expect(withContents("Regexp", "^[a-z]+[.]example[.]com(:443)?$")).toEqual([]);
  });

  it("reports all problems at once", () => {
    const rule = {
      ...normal,
      contents: ["https://example.com", "*.example.com", "a.example", "a.example"],
      methods: ["get", "*"],
    };
    expect(problems(rule)).toEqual([
      expect.stringContaining(`${RULE}.methods[0]: "get": must be one of "GET"`),
      `${RULE}.contents[0]: "https://example.com": must be a host such as "example.com", "example.com:443" or "[2001:db8::1]"`,
      expect.stringContaining(`${RULE}.contents[1]: "*.example.com": must be a host such as`),
      `${RULE}.contents[3]: "a.example": is already item 2 of the list`,
      `${RULE}.methods[1]: "*": "*" must be the only item of its list`,
    ]);
  });

  it("points those who write a wildcard to expressions", () => {
    expect(withContents("Normal", "*.example.com")).toEqual([expect.stringMatching(/a pattern needs contentType "Regexp"$/)]);
  });

  it("has expressions that RE2 compiles fast", () => {
    expect(withContents("Regexp", "(", "a(?=b)", "(a{110}){100}")).toEqual([
      expect.stringContaining(`${RULE}.contents[0]: "(": does not compile as RE2`),
      expect.stringContaining(`${RULE}.contents[1]: "a(?=b)": does not compile as RE2`),
      expect.stringContaining(`${RULE}.contents[2]: "(a{110}){100}": too large`),
    ]);
    expect(withContents("Regexp", "((a{100}){100}){100}")).toEqual([
      expect.stringMatching(/^spec\.trafficInterceptRules: all expressions together, .* at most 16384 are allowed$/),
    ]);
  });
});
