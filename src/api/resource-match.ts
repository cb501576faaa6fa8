// The resources of a rule: API groups and plural resource names.
import { z } from "zod";
import { type Immutable, jsonText } from "../base/json.ts";
import { nonEmptyList } from "./fields.ts";

export const WILDCARD = "*";

export const apiGroupSchema = z
  .string()
  .max(253)
  .regex(/^(\*|[a-z0-9]+(-+[a-z0-9]+)*(\.[a-z0-9]+(-+[a-z0-9]+)*)*)?$/, {
    error: 'must be an API group such as "apps", "" for the core group, or "*" for all',
  });

// No slash: a subresource belongs to its object.
const resourceSchema = z
  .string()
  .max(63)
  .regex(/^(\*|[a-z0-9]+(-+[a-z0-9]+)*)$/, { error: ({ input }) => resourceMessage(jsonText(input)) });

/** Both must match. */
export const resourceMatchSchema = z.strictObject({
  apiGroups: nonEmptyList(apiGroupSchema, 32).describe('API groups. "" is the core group, "*" matches all groups.'),
  resources: nonEmptyList(resourceSchema, 64).describe(
    'Plural resource names, for example "pods". "*" matches all resources. Subresources are included.',
  ),
});

export type ResourceMatch = Immutable<z.output<typeof resourceMatchSchema>>;

function resourceMessage(name: string): string {
  const parent = name.split("/")[0] ?? "";
  if (name.includes("/")) return `must not name a subresource, which belongs to its object: write ${JSON.stringify(parent)}`;
  return 'must be a plural resource name in lower case such as "pods", or "*" for all';
}
