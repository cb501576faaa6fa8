// Route table -> the snapshot of a subset, with its digest. Pure but for the hash. Called by the planner of an app.
import { createHash } from "node:crypto";
import type { Snapshot } from "../../route/snapshot.ts";
import { type RouteContent, routeDigest } from "../../wire/route-type.ts";

/** A snapshot without the version, which is the app's and not the rules'. */
export type Rules = Omit<Snapshot, "version">;

/** What a subset's proxies are to enforce. Equal rules have equal digests, in every manager replica and after restarts. */
export function rulesOf(content: RouteContent): Rules {
  return { ...content, digest: routeDigest(content) };
}

/** A digest of plain data: half of a SHA-256, in hex. */
export function digestOf(data: unknown): string {
  return createHash("sha256").update(JSON.stringify(data)).digest("hex").slice(0, 32);
}
