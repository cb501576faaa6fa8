// The kinds of values that the mesh's annotations have, each with its check. Pure. Invariant: a check costs
// time linear in the length of the value, which any user may write.
import { isIP } from "node:net";
import { didYouMean } from "./nearest.ts";
import { parseQuantity } from "./quantity.ts";

export interface AnnotationValue {
  /** For the reference, as Markdown. */
  readonly values: string;
  /** Why a value is not allowed; undefined if it is allowed. */
  readonly wrong: (value: string) => string | undefined;
  /** The form in which the proxy gets the value. Default: unchanged. */
  readonly normalize?: (value: string) => string;
}

export const BOOLEAN: AnnotationValue = {
  values: "`true`, `false`",
  wrong: (value) => (value === "true" || value === "false" ? undefined : 'must be "true" or "false"'),
};

export function oneOf(allowed: readonly string[]): AnnotationValue {
  const listed = allowed.map((each) => JSON.stringify(each)).join(", ");
  return {
    values: allowed.map((each) => `\`${each}\``).join(", "),
    wrong: (value) => (allowed.includes(value) ? undefined : `must be one of ${listed}${didYouMean(value, allowed)}`),
  };
}

export function quantityOfAtLeast(least: string): AnnotationValue {
  return {
    values: `a quantity, at least \`${least}\``,
    wrong: (value) => {
      const amount = parseQuantity(value);
      if (amount === undefined) return 'must be a quantity such as "100m" or "128Mi"';
      return amount < (parseQuantity(least) ?? 0) ? `must be at least ${least}` : undefined;
    },
  };
}

export const IMAGE: AnnotationValue = {
  values: "an image",
  wrong: (value) => (/^[^\s"'\\]{1,512}$/.test(value) ? undefined : "must be the name of an image"),
};

const MAX_RANGES_CHARS = 16_384;

export const ADDRESS_RANGES: AnnotationValue = {
  values: "ranges such as `10.0.0.0/8,fd00::/8`",
  wrong: (value) => {
    if (value.length > MAX_RANGES_CHARS) return `must have at most ${MAX_RANGES_CHARS} characters`;
    const ranges = rangesOf(value);
    const wrong = ranges.find((range) => !isRange(range));
    if (wrong !== undefined) return `${JSON.stringify(wrong.slice(0, 64))} is not a range of addresses such as 10.0.0.0/8`;
    return ranges.length === 0 ? "must be ranges of addresses such as 10.0.0.0/8, divided by commas" : undefined;
  },
  normalize: (value) => rangesOf(value).join(","),
};

function rangesOf(text: string): string[] {
  return text.split(",").flatMap((part) => part.trim() || []);
}

function isRange(text: string): boolean {
  const [, address = "", bits = ""] = /^([0-9a-fA-F:.]+)\/(\d{1,3})$/.exec(text) ?? [];
  const version = isIP(address);
  return version !== 0 && Number(bits) <= (version === 4 ? 32 : 128);
}
