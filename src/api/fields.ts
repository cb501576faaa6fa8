// The shapes that fields of several kinds have.
import { optional, z } from "zod";
import { listMap } from "./extensions.ts";

/** The largest int32, the bound of counts and ports in Kubernetes. */
export const MAX_INT32 = 2_147_483_647;

/** @param instead what to write instead of less than `min` */
export function int(min: number, max: number, instead?: string) {
  return z
    .int()
    .min(min, instead === undefined ? undefined : { error: `must be at least ${min}; ${instead}` })
    .max(max);
}

export function textUpTo(maxLength: number) {
  return z.string().max(maxLength);
}

export const countSchema = int(0, MAX_INT32);

/** @param whyRequired for the message if the list is missing */
export function nonEmptyList<T extends z.ZodType>(item: T, max: number, whyRequired?: string) {
  const missing = whyRequired === undefined ? "required" : `required: ${whyRequired}`;
  return z
    .array(item, { error: ({ input }) => (input === undefined ? missing : undefined) })
    .min(1)
    .max(max);
}

/** A list, or none, whose items have unique names. Server-side apply merges it by name. */
export function namedList<T extends z.ZodType>(item: T, max: number) {
  return optional(z.array(item).max(max)).meta(listMap("name"));
}

/** A list, or none, that server-side apply treats as one field. */
export function atomicList<T extends z.ZodType>(item: T, max: number) {
  return z.array(item).max(max).optional().meta({ "x-kubernetes-list-type": "atomic" });
}
