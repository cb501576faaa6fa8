import { expect, test } from "vitest";
import { subsetNameSchema } from "../../api/names.ts";
import { DEFAULT_SUBSET } from "./table.ts";
import { DEFAULT_DISPLAY_NAME, subsetDisplayName, subsetOfDisplayName } from "./words.ts";

test("the default subset is written default, every other subset by its name", () => {
  expect(subsetDisplayName(DEFAULT_SUBSET)).toBe("default");
  expect(subsetDisplayName("v2")).toBe("v2");
  for (const subset of [DEFAULT_SUBSET, "v2"]) expect(subsetOfDisplayName(subsetDisplayName(subset))).toBe(subset);
});

test("no spec may name a subset by the display name of the default one", () => {
  expect(subsetNameSchema.safeParse(DEFAULT_DISPLAY_NAME).success).toBe(false);
});
