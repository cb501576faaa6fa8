// Reads answers of the API server. Invariant: what is no answer of an API server is an error, and nothing that is empty.
import type { z } from "zod";
import { failure } from "./command.ts";

/** @throws MeshError `COMMAND_FAILED` with the path */
export function readAnswer<T>(schema: z.ZodType<T>, answer: unknown, path: string): T {
  const { data, success } = schema.safeParse(answer);
  if (success) return data;
  throw failure(`reading ${path}: the answer is none of an API server of Kubernetes`);
}
