// Reading configuration from the environment through a zod schema. Invariant: everything is read and checked before a
// port is bound, and bad configuration ends the process with exit code 64 and every problem in one message.
import type { z } from "zod";
import { MeshError } from "./errors.ts";

/** Exit code for wrong usage or configuration (sysexits.h EX_USAGE). */
export const EXIT_USAGE = 64;

/**
 * Checks `input` against the schema.
 * @throws MeshError `CONFIG_INVALID` that lists every problem as "NAME: why"
 */
export function parseConfig<T extends z.ZodType>(schema: T, input: unknown): z.output<T> {
  const result = schema.safeParse(input);
  if (result.success) return result.data;
  const problems = result.error.issues.map((issue) => `  ${issue.path.join(".") || "(all)"}: ${issue.message}`);
  throw new MeshError("CONFIG_INVALID", `reading configuration:\n${problems.join("\n")}`);
}
