// What the end-to-end tests need of the machine. In CI a missing piece is a failure; elsewhere the file is skipped with one
// clear line, so that a user without Go still gets a true result for the rest.
import { describe } from "vitest";
import { whyNoGo } from "./go-build.ts";

const missing = await whyNoGo();

/** `describe` for tests that need the real control plane. */
export function describeWithKube(name: string, body: () => void): void {
  if (missing === undefined || process.env.CI === "true") {
    describe(name, body); // in CI the first hook fails by itself, and says why
    return;
  }
  process.stderr.write(`SKIPPED (needs the real control plane: ${missing}): ${name}\n`);
  describe.skip(name, body);
}
