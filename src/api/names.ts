// Object names and labels, by Kubernetes' rules. Invariant: each schema refuses with one message that names
// the allowed form; the expressions are RE2, since they become patterns in the CRD.
import { jsonText } from "../base/json.ts";
import { celRules } from "./extensions.ts";
import { textUpTo } from "./fields.ts";

/** RFC 1123. */
export const dnsLabelSchema = textUpTo(63).regex(/^[a-z0-9]+(-+[a-z0-9]+)*$/, { error: dnsLabelMessage });

/** Separates the name of a lock from its subset. */
export const SUBSET_SEPARATOR = "---";
/** The default subset in messages and statuses (src/mesh/ownership/words.ts). */
const DEFAULT_DISPLAY_NAME = "default";

const RESERVED_NAME =
  "is reserved for the pods that match no subset; use another name, or remove this subset: these pods then own its namespaces";

/** A DNS label without `---`, since a lock's name NAME---SUBSET is split there. */
const lockSuffixSchema = textUpTo(63).regex(/^[a-z0-9]+(-{1,2}[a-z0-9]+)*$/, {
  error: ({ input }) =>
    jsonText(input).includes(SUBSET_SEPARATOR)
      ? `must not contain "${SUBSET_SEPARATOR}", which separates a lock from its subset`
      : dnsLabelMessage(),
});

/** The suffix of a lock's name, but not `default`. */
export const subsetNameSchema = lockSuffixSchema
  .refine((name) => name !== DEFAULT_DISPLAY_NAME, { error: RESERVED_NAME })
  .meta(celRules({ rule: `self != "${DEFAULT_DISPLAY_NAME}"`, message: RESERVED_NAME }));

export const shardNameSchema = lockSuffixSchema.refine((name) => name !== DEFAULT_DISPLAY_NAME, {
  error: "is reserved for the pods that match no shard; use another name",
});

export const MAX_NAME_LENGTH = 253;

const SUBDOMAIN = /^[a-z0-9]+(-+[a-z0-9]+)*(\.[a-z0-9]+(-+[a-z0-9]+)*)*$/;

/** RFC 1123: DNS labels joined by dots. */
export const dnsSubdomainSchema = textUpTo(MAX_NAME_LENGTH).regex(SUBDOMAIN, {
  error: 'must be a DNS subdomain: lower-case letters, digits, "-" and ".", with a letter or digit at both ends',
});

/** The value may be empty. */
export const labelValueSchema = textUpTo(63).regex(/^([A-Za-z0-9]+([-_.]+[A-Za-z0-9]+)*)?$/, {
  error: 'must be a label value: letters, digits, "-", "_" and ".", with a letter or digit at both ends',
});

const LABEL_KEY = /^([a-z0-9]+(-+[a-z0-9]+)*(\.[a-z0-9]+(-+[a-z0-9]+)*)*\/)?[A-Za-z0-9]+([-_.]+[A-Za-z0-9]+)*$/;
const MAX_LABEL_NAME = 63;

/** A name, with an optional prefix of a DNS subdomain and "/". */
export const labelKeySchema = textUpTo(MAX_NAME_LENGTH + 1 + MAX_LABEL_NAME)
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
