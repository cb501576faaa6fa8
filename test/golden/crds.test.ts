// The written CRDs are golden files of the schemas in src/api: a change of a schema shows in review as a change of YAML.
import { expect, it } from "vitest";
import { crdFiles, staleCrdFiles } from "../../scripts/generate.ts";

it("deploy/crds is what the schemas say (if not: npm run generate)", async () => {
  expect(await staleCrdFiles()).toEqual([]);
});

it("generates the same bytes every time", () => {
  expect([...crdFiles()]).toEqual([...crdFiles()]);
});
