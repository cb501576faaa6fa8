// docs/protocol/README.md lists a run for each kind of fault and for each rule of the Promela file. Spin checks the runs every night.
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { HOLDS, MUTANTS } from "../support/protocol-page.ts";

const model = readFileSync("docs/protocol/handover.pml", "utf8");
const nameOf = (flag: string) => flag.replace(/^-D/, "").replace(/=.*/, "");

test("the page has a run with every flag of the model, and names no other flag", () => {
  const known = [...model.matchAll(/^#if(?:n?def) (\w+)/gm)].map(([, name]) => name);
  const used = [...HOLDS, ...MUTANTS].flatMap(({ flags }) => flags.map(nameOf));
  expect(new Set(used)).toEqual(new Set(known.filter((name) => name !== "DETOURS")));
});

test("the page has a run for every rule that the model can leave out", () => {
  const rules = new Set([...model.matchAll(/WithoutRule\((\d+)\)/g)].map(([, rule]) => `-DMUTANT=${rule}`));
  expect(rules.size).toBeGreaterThan(8);
  expect(new Set(MUTANTS.flatMap(({ flags }) => flags.filter((flag) => flag.startsWith("-DMUTANT="))))).toEqual(rules);
});
