// Content types. Invariant: what is done with a response is decided by its own type, never by what was asked for. Pure.

/** How a body is encoded. `other` cannot be filtered. */
export type BodyEncoding = "json" | "protobuf" | "cbor" | "other";

const ENCODINGS: ReadonlyMap<string, BodyEncoding> = new Map([
  ["application/json", "json"],
  ["application/merge-patch+json", "json"],
  ["application/strategic-merge-patch+json", "json"],
  ["application/vnd.kubernetes.protobuf", "protobuf"],
  ["application/cbor", "cbor"],
  ["application/cbor-seq", "cbor"],
]);

// A server chooses JSON for these where JSON is its first type, as it is for every API server.
const WILDCARDS: ReadonlySet<string> = new Set(["*/*", "application/*"]);

/**
 * The encoding of a body, by its Content-Type; parameters do not matter. JSON Patch is `other`: its document is no object.
 */
export function encodingOf(contentType: string | undefined): BodyEncoding {
  return ENCODINGS.get(mediaType(contentType ?? "")) ?? "other";
}

/**
 * The Accept header without the clauses whose responses cannot be filtered (CBOR, YAML, text); order, parameters and
 * weights stay. "application/json" if nothing is left or nothing was there.
 */
export function narrowAccept(accept: string | undefined): string {
  const clauses = splitClauses(accept ?? "").filter((clause) => {
    const type = mediaType(clause);
    const encoding = ENCODINGS.get(type);
    return WILDCARDS.has(type) || encoding === "json" || encoding === "protobuf";
  });
  return clauses.length === 0 ? "application/json" : clauses.join(",");
}

function mediaType(clause: string): string {
  return (clause.split(";", 1)[0] ?? "").trim().toLowerCase();
}

// Commas inside quoted parameter values do not separate.
function splitClauses(accept: string): string[] {
  return (accept.match(/(?:"(?:[^"\\]|\\.)*"|[^,])+/g) ?? []).map((clause) => clause.trim()).filter((clause) => clause !== "");
}
