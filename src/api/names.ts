// The schemas of object names and labels, by Kubernetes' rules. Invariant: each refuses with one message that
// names the allowed form; the expressions are RE2, since they become patterns in the CRD, and match in linear
// time.
import { z } from "zod";
import { jsonText } from "../base/json.ts";
import { celRules } from "./extensions.ts";

/** A DNS label (RFC 1123): lower-case letters, digits and "-", at most 63. */
export const dnsLabelSchema = z
  .string()
  .max(63)
  .regex(/^[a-z0-9]+(-+[a-z0-9]+)*$/, { error: dnsLabelMessage });

/** The separator between a lock's name and its subset. */
export const SUBSET_SEPARATOR = "---";

/** The name of the default subset in status and metrics; src/route/subset-name.ts writes it. */
const DEFAULT_DISPLAY_NAME = "default";

const RESERVED_NAME =
  "is reserved for the pods that match no subset; use another name, or remove this subset: these pods then own its namespaces";

/** A DNS label without `---`, since a lock's name NAME---SUBSET is split there. */
const lockSuffixSchema = z
  .string()
  .max(63)
  .regex(/^[a-z0-9]+(-{1,2}[a-z0-9]+)*$/, {
    error: ({ input }) =>
      jsonText(input).includes(SUBSET_SEPARATOR)
        ? `must not contain "${SUBSET_SEPARATOR}", which separates a lock from its subset`
        : dnsLabelMessage(),
  });

/** The name of a subset: the suffix of a lock's name, but not `default`. */
export const subsetNameSchema = lockSuffixSchema
  .refine((name) => name !== DEFAULT_DISPLAY_NAME, { error: RESERVED_NAME })
  .meta(celRules({ rule: `self != "${DEFAULT_DISPLAY_NAME}"`, message: RESERVED_NAME }));

/** The name of a shard, which is a subset with an object of its own. */
export const shardNameSchema = lockSuffixSchema.refine((name) => name !== DEFAULT_DISPLAY_NAME, {
  error: "is reserved for the pods that match no shard; use another name",
});

/** The maximum length of a DNS subdomain, and so of most object names. */
export const MAX_NAME_LENGTH = 253;

const SUBDOMAIN = /^[a-z0-9]+(-+[a-z0-9]+)*(\.[a-z0-9]+(-+[a-z0-9]+)*)*$/;

/** A DNS subdomain (RFC 1123): DNS labels joined by dots, at most 253. */
export const dnsSubdomainSchema = z.string().max(MAX_NAME_LENGTH).regex(SUBDOMAIN, {
  error: 'must be a DNS subdomain: lower-case letters, digits, "-" and ".", with a letter or digit at both ends',
});

/** The value of a label; may be empty. */
export const labelValueSchema = z
  .string()
  .max(63)
  .regex(/^([A-Za-z0-9]+([-_.]+[A-Za-z0-9]+)*)?$/, {
    error: 'must be a label value: letters, digits, "-", "_" and ".", with a letter or digit at both ends',
  });

const LABEL_KEY = /^([a-z0-9]+(-+[a-z0-9]+)*(\.[a-z0-9]+(-+[a-z0-9]+)*)*\/)?[A-Za-z0-9]+([-_.]+[A-Za-z0-9]+)*$/;
const MAX_LABEL_NAME = 63;

/** The key of a label: a name of at most 63, with an optional prefix of a DNS subdomain and "/". */
export const labelKeySchema = z
  .string()
  .max(MAX_NAME_LENGTH + 1 + MAX_LABEL_NAME)
  .regex(LABEL_KEY, {
    error: 'must be a label key: letters, digits, "-", "_" and ".", with an optional DNS prefix and "/" in front',
  })
  .refine(partsFit, { error: `too long: at most ${MAX_LABEL_NAME} after the "/", ${MAX_NAME_LENGTH} before it` });

function partsFit(key: string): boolean {
  const slash = key.indexOf("/");
  return slash <= MAX_NAME_LENGTH && key.length - slash - 1 <= MAX_LABEL_NAME;
}

function dnsLabelMessage(): string {
  return 'must be a DNS label: lower-case letters, digits and "-", with a letter or digit at both ends, at most 63';
}
