// Accept as it is narrowed, against a reading of the header that follows the API server's: no clause is left whose answer could
// not be filtered, and none that could is lost.
import fc from "fast-check";
import { expect, test } from "vitest";
import { encodingOf, narrowAccept, preferredEncoding } from "../../src/kube/codec/content-negotiation.ts";
import { budget } from "../support/fuzz.ts";

const READABLE = ["application/json", "application/vnd.kubernetes.protobuf", "*/*", "application/*"];
const UNREADABLE = [
  "application/cbor",
  "application/cbor-seq",
  "application/yaml",
  "text/plain",
  "*/cbor",
  "application / cbor",
  "*",
  "application/json-seq",
  "x",
];

const space = fc.constantFrom("", " ", "\t", "  ");
const spelled = (names: readonly string[]) =>
  fc
    .tuple(fc.constantFrom(...names), fc.nat(2))
    .map(([name, how]) => (how === 0 ? name : how === 1 ? name.toUpperCase() : name.replace("app", "APP")));
const parameter = fc.constantFrom(
  ";q=0",
  ";q=0.5",
  "; q=1.0",
  " ;Q=0.9",
  ";q=x",
  ";as=Table;v=v1;g=meta.k8s.io",
  ";charset=utf-8",
  ";stream=watch",
  ';x="a',
  ";",
);
const clause = (names: readonly string[]) =>
  fc
    .tuple(space, spelled(names), fc.array(parameter, { maxLength: 3 }), space)
    .map(([before, name, parameters, after]) => before + name + parameters.join("") + after);
const clauses = fc.array(fc.oneof(clause(READABLE), clause(UNREADABLE), fc.constantFrom("", " ")), { maxLength: 6 });

// github.com/munnerz/goautoneg: commas separate, whatever stands in quotes; the type ends at the first semicolon.
function typesIn(accept: string): string[] {
  return accept
    .split(",")
    .map((each) => (each.split(";")[0] ?? "").trim().toLowerCase())
    .filter((each) => each !== "");
}

test("what is left can be filtered, in the caller's order and words", () => {
  fc.assert(
    fc.property(clauses, (clauses) => {
      const accept = clauses.join(",");
      const kept = clauses.map((each) => each.trim()).filter((each) => READABLE.includes(typesIn(each)[0] ?? ""));
      const narrowed = narrowAccept(accept);
      expect(narrowed).toBe(kept.length === 0 ? "application/json" : kept.join(","));
      for (const type of typesIn(narrowed)) expect(READABLE).toContain(type);
      expect(narrowAccept(narrowed)).toBe(narrowed);
    }),
    budget(1_000),
  );
});

test("whatever the header holds, nothing is left that is not known to be readable", () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.string({ unit: "binary" }),
        fc.array(fc.constantFrom("application/cbor", ",", ";", "q=0", '"', "*/*", " ", "\\")).map((parts) => parts.join("")),
      ),
      (accept) => {
        for (const type of typesIn(narrowAccept(accept))) {
          expect(type.startsWith("*/") || type === "application/*" || ["json", "protobuf"].includes(encodingOf(type))).toBe(true);
        }
        expect(["json", "protobuf"]).toContain(preferredEncoding(accept));
      },
    ),
    budget(1_000),
  );
});
