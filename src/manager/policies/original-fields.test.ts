// Each field of the originals' kinds of policies, with the values that their Go code reads: it works, it has no
// effect and the status says why, or it is refused with a sentence that docs/migration.md has too.
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { CIRCUIT_BREAKER } from "../../../test/support/originals/circuit-breaker.ts";
import { FAULT_INJECTION } from "../../../test/support/originals/fault-injection.ts";
import { type OriginalType, objectWith, withField } from "../../../test/support/originals/field.ts";
import { TRAFFIC_POLICY } from "../../../test/support/originals/traffic-policy.ts";
import { policyProblemsOf } from "../../../test/support/traffic-objects.ts";
import { crdOf, type StructuralSchema } from "../../api/crd.ts";
import { circuitBreakers } from "./circuit-breakers.ts";
import { faultInjections } from "./fault-injections.ts";
import type { TargetPod } from "./policy-kind.ts";
import { trafficPolicies } from "./traffic-policies.ts";

const COMPILE = {
  CircuitBreaker: circuitBreakers.compile,
  FaultInjection: faultInjections.compile,
  TrafficPolicy: trafficPolicies.compile,
};
const MIGRATION = readFileSync(new URL("../../../docs/migration.md", import.meta.url), "utf8");
/** The tables of fields: the fields, what was written there, and the message. A field is named by the end of its path. */
const ROWS = MIGRATION.split("\n").map((line) => line.split(" | ").map((cell) => cell.trim()));

function documented(path: string, message: string): boolean {
  return ROWS.some(([fields = "", , refused = ""]) => {
    const names = [...fields.matchAll(/`([^`]+)`/g)].map(([, name = ""]) => name);
    return refused.includes(message) && names.some((name) => `.${path}`.endsWith(`.${name}`));
  });
}

const PODS: readonly TargetPod[] = ["shop", "cart", ""].map((app) => ({
  namespace: "ops",
  name: `${app}-0`,
  uid: `uid-${app}`,
  ip: "10.0.0.1",
  labels: app === "" ? {} : { app },
  app,
  subset: "",
  hasEgress: true,
  hasRun: true,
}));

/** What the manager makes of an object: the rules, and the pods that get them. */
function compiled({ kind }: OriginalType, object: unknown) {
  const result = COMPILE[kind](object as never);
  if (!result.ok) throw new Error(JSON.stringify(result.problems));
  const { rules, off, notes, isFor } = result.value;
  return { effect: { rules, pods: PODS.map(isFor) }, notes: off === "" ? notes : [off, ...notes] };
}

/** The schema that the API server has of a field; undefined if it removes the field. */
function schemaOf({ kind }: OriginalType, path: string): StructuralSchema | undefined {
  const root = crdOf(kind).spec.versions[0]?.schema.openAPIV3Schema;
  return path.split(".").reduce<StructuralSchema | undefined>((schema, part) => {
    const field = schema?.properties?.[part.replace("[]", "")];
    return part.endsWith("[]") ? field?.items : field;
  }, root);
}

const TYPES = [CIRCUIT_BREAKER, FAULT_INJECTION, TRAFFIC_POLICY];

describe.each(TYPES)("the original's $kind", (type) => {
  const cases = Object.entries(type.fields).flatMap(([path, list]) => list.map((each) => ({ path, each })));
  const shown = (value: unknown) => JSON.stringify(value)?.slice(0, 60) ?? "absent";
  const table = cases.map(({ path, each }) => [path, shown(each.value), each] as const);

  it("is valid with all fields that may stand together, and says nothing about any", () => {
    const object = type.sample();
    expect(policyProblemsOf(type.kind, object)).toEqual([]);
    expect(compiled(type, object).notes).toEqual([]);
  });

  it.each(table.filter(([, , { refused }]) => refused === undefined))("%s works: %s", (path, _, each) => {
    const object = objectWith(type, path, each);
    expect(policyProblemsOf(type.kind, object)).toEqual([]);
    const { effect, notes } = compiled(type, object);
    expect(notes).toEqual(each.note === undefined ? [] : [each.note]);
    if ("unlike" in each)
      expect(effect).not.toEqual(compiled(type, objectWith(type, path, { ...each, value: each.unlike })).effect);
  });

  it.each(table.filter(([, , { refused }]) => refused !== undefined))(
    "%s is refused with a sentence that the docs have: %s",
    (path, _, each) => {
      const problems = policyProblemsOf(type.kind, objectWith(type, path, each));
      expect(problems).toEqual([expect.stringContaining(`: ${each.refused}`)]);
      expect(documented(path, each.refused ?? "")).toBe(true);
    },
  );

  it("has no field that the API server removes", () => {
    const paths = [...Object.keys(type.fields), ...type.status.map((field) => `status.${field}`)];
    expect(paths.filter((path) => schemaOf(type, path) === undefined)).toEqual([]);
  });

  it.each(Object.entries(type.older))(
    "an older version's %s is an unknown field, and the docs say what it is now",
    (path, value) => {
      expect(schemaOf(type, path)).toBeUndefined();
      expect(policyProblemsOf(type.kind, withField(type.sample(), path, value))).toEqual([
        expect.stringContaining("unknown field"),
      ]);
      expect(MIGRATION).toContain(`\`${path.replace(/^spec\./, "")}\``);
    },
  );
});
