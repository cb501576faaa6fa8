// How long ago something was, as kubectl writes ages: the largest units that say enough.

const UNITS = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1_000],
] as const;

/** For example "41s", "5m12s", "3h", "12d"; "?" for a time that cannot be read. */
export function age(since: string | undefined, nowMs: number): string {
  const ms = Math.max(0, nowMs - Date.parse(since ?? ""));
  if (Number.isNaN(ms)) return "?";
  const at = UNITS.findIndex(([, unit]) => ms >= unit);
  const [name, unit] = UNITS[at] ?? UNITS[3];
  const count = Math.floor(ms / unit);
  const [smaller, part] = UNITS[at + 1] ?? ["", 1];
  const rest = Math.floor((ms % unit) / part);
  return count < 10 && at >= 0 && smaller !== "" && rest > 0 ? `${count}${name}${rest}${smaller}` : `${count}${name}`;
}
