// Label selectors in their string form, as an API server parses them; without comparisons of numbers.
import { MeshError } from "../../src/base/errors.ts";
import type { LabelTerm } from "../../src/kube/label-selector.ts";

const SET_TERM = /^([\w./-]+)\s+(in|notin)\s*\(([^()]*)\)$/;
const EQUALITY_TERM = /^([\w./-]+)\s*(==|=|!=)\s*([\w.-]*)$/;
const EXISTS_TERM = /^(!?)\s*([\w./-]+)$/;

/**
 * Parses the string form.
 * @throws MeshError `BAD_SELECTOR`
 */
export function parseTerms(text: string): LabelTerm[] {
  if (text.trim() === "") return [];
  return splitTopLevel(text).map((part) => parseTerm(part.trim(), text));
}

function parseTerm(part: string, whole: string): LabelTerm {
  const set = SET_TERM.exec(part);
  if (set?.[1] !== undefined && set[3] !== undefined) {
    return { key: set[1], operator: set[2] === "in" ? "in" : "notin", values: set[3].split(",").map((value) => value.trim()) };
  }
  const equality = EQUALITY_TERM.exec(part);
  if (equality?.[1] !== undefined && equality[3] !== undefined) {
    const operators = { "=": "in", "==": "in", "!=": "notin" } as const;
    return { key: equality[1], operator: operators[equality[2] as keyof typeof operators], values: [equality[3]] };
  }
  const exists = EXISTS_TERM.exec(part);
  if (exists?.[2] !== undefined) return { key: exists[2], operator: exists[1] === "!" ? "!" : "exists", values: [] };
  throw new MeshError("BAD_SELECTOR", `parsing label selector ${JSON.stringify(whole)}: cannot read ${JSON.stringify(part)}`);
}

function splitTopLevel(text: string): string[] {
  const parts: string[] = [];
  let depth = 0;
  let start = 0;
  for (let index = 0; index < text.length; index++) {
    const char = text[index];
    if (char === "(") depth++;
    else if (char === ")") depth--;
    else if (char === "," && depth === 0) {
      parts.push(text.slice(start, index));
      start = index + 1;
    }
  }
  parts.push(text.slice(start));
  return parts;
}
