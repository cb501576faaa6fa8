// Content types and Accept. A response is handled by its own content type, never by the requested one.
import { JSON_TYPE, MERGE_PATCH_TYPE, mediaTypeOf, PROTOBUF_TYPE, STRATEGIC_MERGE_PATCH_TYPE } from "../media-types.ts";
import type { Encoding } from "./base/types.ts";

/** The encoding of a body. `other` cannot be filtered. */
type BodyEncoding = "json" | "protobuf" | "cbor" | "other";

const ENCODINGS: ReadonlyMap<string, BodyEncoding> = new Map([
  [JSON_TYPE, "json"],
  [MERGE_PATCH_TYPE, "json"],
  [STRATEGIC_MERGE_PATCH_TYPE, "json"],
  [PROTOBUF_TYPE, "protobuf"],
  ["application/cbor", "cbor"],
  ["application/cbor-seq", "cbor"],
]);

// A server answers these with its first type, which is JSON for every API server.
const WILDCARDS: ReadonlySet<string> = new Set(["*/*", "application/*"]);

/** JSON Patch is `other`, as its document is not an object. */
export function encodingOf(contentType: string | undefined): BodyEncoding {
  return ENCODINGS.get(mediaTypeOf(contentType)) ?? "other";
}

/** The encoding of a request's body. The API server takes a missing content type for JSON. */
export function requestEncodingOf(contentType: string | undefined): BodyEncoding {
  return mediaTypeOf(contentType) === "" ? "json" : encodingOf(contentType);
}

/**
 * The header without the clauses whose responses cannot be filtered (CBOR, YAML, text). Order, parameters and
 * weights stay. "application/json" if no clause is left.
 */
export function narrowAccept(accept: string | undefined): string {
  const clauses = parseAccept(accept).filter(({ encoding }) => encoding !== undefined);
  return clauses.length === 0 ? JSON_TYPE : clauses.map(({ text }) => text).join(",");
}

/**
 * The encoding for responses of the proxy itself: that of the clause with the highest quality, the first
 * among equals. JSON if the client accepts neither, since every Kubernetes client reads it.
 */
export function preferredEncoding(accept: string | undefined): Encoding {
  let best: { readonly encoding: Encoding; readonly quality: number } = { encoding: "json", quality: 0 };
  for (const { encoding, quality } of parseAccept(accept)) {
    if (encoding !== undefined && quality > best.quality) best = { encoding, quality };
  }
  return best.encoding;
}

export function watchContentType(encoding: Encoding): string {
  return encoding === "json" ? JSON_TYPE : `${PROTOBUF_TYPE};stream=watch`;
}

interface AcceptClause {
  readonly text: string;
  /** The encoding that the clause accepts; undefined if such responses cannot be filtered. */
  readonly encoding: Encoding | undefined;
  /** 0 if the text of `q` is not a number. */
  readonly quality: number;
}

// Commas inside quoted parameters separate clauses too, as for the API server (github.com/munnerz/goautoneg).
function parseAccept(accept = ""): AcceptClause[] {
  const clauses: AcceptClause[] = [];
  for (const part of accept.split(",")) {
    const text = part.trim();
    if (text === "") continue;
    const type = mediaTypeOf(text);
    const encoding = WILDCARDS.has(type) ? "json" : ENCODINGS.get(type);
    clauses.push({
      text,
      encoding: encoding === "json" || encoding === "protobuf" ? encoding : undefined,
      quality: qualityOf(text),
    });
  }
  return clauses;
}

function qualityOf(clause: string): number {
  const [, ...parameters] = clause.split(";").map((part) => part.trim().toLowerCase());
  const text = parameters.find((parameter) => parameter.startsWith("q="));
  const quality = text === undefined ? 1 : Number(text.slice(2));
  return Number.isNaN(quality) ? 0 : quality;
}
