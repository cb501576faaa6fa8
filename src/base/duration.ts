// Durations as Go writes them (time.ParseDuration): `300ms`, `1m30s`. Pure. Used for fields, and for the
// timeout of a webhook's call.

const UNIT_MS: Readonly<Record<string, number>> = { ns: 1e-6, us: 1e-3, ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };
export const DURATION = /^(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|ms|s|m|h))+$/;
const PART = /([0-9.]+)([a-z]+)/g;

/** Milliseconds; undefined for any other text. */
export function parseDuration(text: string): number | undefined {
  if (!DURATION.test(text)) return undefined;
  return [...text.matchAll(PART)].reduce((sum, [, count, unit = ""]) => sum + Number(count) * (UNIT_MS[unit] ?? Number.NaN), 0);
}
