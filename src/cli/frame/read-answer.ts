// Reads answers of the API server. Invariant: what is no answer of an API server is an error, and nothing that is empty.
import type { z } from "zod";
import { isMeshError } from "../../base/errors.ts";
import { failure } from "./command.ts";

/** @throws MeshError `COMMAND_FAILED` with the path */
export function readAnswer<T>(schema: z.ZodType<T>, answer: unknown, path: string): T {
  const { data, success } = schema.safeParse(answer);
  if (success) return data;
  throw failure(`reading ${path}: the answer is none of an API server of Kubernetes`);
}

/** Undefined if there is no such object. */
export function orNothing<T>(reading: Promise<T>): Promise<T | undefined> {
  return reading.catch((error: unknown) => {
    if (isMeshError(error, "NOT_FOUND")) return undefined;
    throw error;
  });
}
