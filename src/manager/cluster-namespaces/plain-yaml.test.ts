import { describe, expect, it, vi } from "vitest";
import { parse, stringify } from "yaml";
import { MAX_YAML_MARKS, readPlainYaml } from "./plain-yaml.ts";

const VALUE = { a: 1, list: ["x", { y: null, z: true }], text: "a: b", "__proto__ ": {}, nested: { deep: [[], {}] } };

describe("YAML of a tenant", () => {
  it.each([stringify(VALUE), JSON.stringify(VALUE), JSON.stringify(VALUE, null, 2), stringify(VALUE).replaceAll("\n", "\r\n")])(
    "is read as any parser reads it: %j",
    (text) => {
      expect(readPlainYaml(text)).toEqual(parse(text));
    },
  );

  it.each(["", "# nothing", "~"])("is null if it has nothing: %j", (text) => {
    expect(readPlainYaml(text)).toBeNull();
  });

  it("keeps a key of the name __proto__ as a field", () => {
    expect(Object.keys(readPlainYaml("__proto__: { a: 1 }") as object)).toEqual(["__proto__"]);
  });

  it.each<[string, string]>([
    ["a syntax error", "{"],
    ["two documents", "a: 1\n---\na: 2"],
    ["a duplicate key", "a: 1\na: 2"],
    ["a duplicate key in quotes", "a: 1\n'a': 2"],
    ["an alias", "a: &a 1\nb: *a"],
    ["an alias of nothing", "b: *a"],
    ["a list as a key", "? [a]\n: b"],
    ["a map as a key", "? ? a\n: b"],
    ["a number as a key", "1: b"],
    ["more levels than a kubeconfig has", `${"[".repeat(40)}${"]".repeat(40)}`],
  ])("is refused with %s", (_, text) => {
    expect(() => readPlainYaml(text)).toThrow("it must be one YAML document");
  });

  it("is refused before it is parsed if it has more fields and symbols than a kubeconfig needs", () => {
    expect(() => readPlainYaml("a: 1\n".repeat(MAX_YAML_MARKS + 1))).toThrow("keep one cluster, one user and one context");
    const many = Array.from({ length: MAX_YAML_MARKS / 2 }, (_, at) => `k${at}: x`).join("\n");
    expect(Object.keys(readPlainYaml(many) as object)).toHaveLength(MAX_YAML_MARKS / 2);
  });

  it("has room for a long token and long certificates", () => {
    const text = stringify({ token: "a-b_c.".repeat(3_000), data: "A+/=".repeat(10_000) });
    expect(readPlainYaml(text)).toEqual(parse(text));
  });

  // Each takes a quadratic time or worse in the parser, without a bound.
  it.each(["? ", "[", "{", "- ", "&a ", "!a ", "!!str ", "\\x", "%A\n", "[\n", "a: 1\n", "{a,", "- - ? "])(
    "of %j again and again takes little time, at every length",
    (part) => {
      for (const count of [100, 300, 900, MAX_YAML_MARKS, 20_000]) {
        for (const text of [part.repeat(count), `"${part.repeat(count)}`, `${part.repeat(count)}a`]) {
          const before = process.cpuUsage();
          try {
            readPlainYaml(text);
          } catch {}
          expect(process.cpuUsage(before).user / 1_000).toBeLessThan(1_000);
        }
      }
    },
  );

  it("shows nothing of its text in an error or in a warning of the process", () => {
    const warn = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
    for (const text of ["? { secret: 1 }\n: x", "secret: [", "!secret secret", "%SECRET secret\n---\na: 1", "secret: *secret"]) {
      let message = "";
      try {
        readPlainYaml(text);
      } catch (error) {
        message = String(error);
      }
      expect(message).not.toMatch(/secret/i);
    }
    expect(warn).not.toHaveBeenCalled();
    warn.mockRestore();
  });
});
