// Field selectors in their string form (k8s.io/apimachinery/pkg/fields): terms joined by commas, the
// operators =, == and !=, backslash escapes.
import { MeshError } from "../base/errors.ts";

export interface FieldTerm {
  readonly field: string;
  readonly operator: "=" | "!=";
  readonly value: string;
}

/** @throws MeshError `BAD_SELECTOR` */
export function parseFieldSelector(text: string): FieldTerm[] {
  if (text.trim() === "") return [];
  const terms = text.match(/(?:[^\\,]|\\.)+/gs) ?? [];
  return terms.map((term) => {
    const match = /^((?:[^\\=!]|\\.)+?)(==|!=|=)(.*)$/s.exec(term);
    const [, field, operator, value] = match ?? [];
    if (field === undefined || operator === undefined || value === undefined) {
      throw new MeshError(
        "BAD_SELECTOR",
        `parsing field selector ${JSON.stringify(text)}: term ${JSON.stringify(term)} has no operator`,
      );
    }
    return { field: field.trim(), operator: operator === "!=" ? "!=" : "=", value: value.replace(/\\([\\,=])/g, "$1") };
  });
}

export function formatFieldTerm({ field, operator, value }: FieldTerm): string {
  return `${field}${operator}${value.replace(/[\\,=]/g, "\\$&")}`;
}

/** The name in `metadata.name=x`, or "" if the selector is absent, malformed, or does not name one object. */
export function nameOfFieldSelector(text: string): string {
  if (!text.includes("metadata.name")) return "";
  try {
    return parseFieldSelector(text).find((term) => term.field === "metadata.name" && term.operator === "=")?.value ?? "";
  } catch {
    return "";
  }
}
