// Fields with a duration, such as "1m30s".
import { DURATION, parseDuration } from "../base/clock.ts";
import { celRules } from "./extensions.ts";
import { textUpTo } from "./fields.ts";

/** Milliseconds of a duration that the schema has checked. */
export function durationMs(text: string): number {
  return parseDuration(text) ?? Number.NaN;
}

export function durationSchema(least: string, most: string) {
  const message = `must be from ${least} to ${most}`;
  const isWithin = (text: string) => {
    const ms = parseDuration(text);
    return ms === undefined || (ms >= durationMs(least) && ms <= durationMs(most));
  };
  return textUpTo(32)
    .regex(DURATION, { error: 'must be a duration such as "300ms", "10s" or "1m30s"' })
    .refine(isWithin, { error: message })
    .meta(celRules({ rule: `duration(self) >= duration("${least}") && duration(self) <= duration("${most}")`, message }));
}
