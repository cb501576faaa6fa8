// Durations as Go writes them (time.ParseDuration): `300ms`, `1m30s`. Pure. Used by the policy kinds.
import { z } from "zod";
import { celRules } from "./extensions.ts";

const UNIT_MS: Readonly<Record<string, number>> = { ns: 1e-6, us: 1e-3, ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };
const DURATION = /^(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|ms|s|m|h))+$/;
const PART = /([0-9.]+)([a-z]+)/g;

/** Milliseconds; undefined for any other text. */
export function parseDuration(text: string): number | undefined {
  if (!DURATION.test(text)) return undefined;
  return [...text.matchAll(PART)].reduce((sum, [, count, unit = ""]) => sum + Number(count) * (UNIT_MS[unit] ?? Number.NaN), 0);
}

/** Milliseconds of a duration that the schema has checked. */
export function durationMs(text: string): number {
  return parseDuration(text) ?? Number.NaN;
}

/** A duration from `least` to `most`, which are durations too. */
export function durationSchema(least: string, most: string) {
  const message = `must be from ${least} to ${most}`;
  const isWithin = (text: string) => {
    const ms = parseDuration(text);
    return ms === undefined || (ms >= durationMs(least) && ms <= durationMs(most));
  };
  return z
    .string()
    .max(32)
    .regex(DURATION, { error: 'must be a duration such as "300ms", "10s" or "1m30s"' })
    .refine(isWithin, { error: message })
    .meta(celRules({ rule: `duration(self) >= duration("${least}") && duration(self) <= duration("${most}")`, message }));
}
