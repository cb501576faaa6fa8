// Joins several lists into one. The lists have the same version and differ only in their items, so the one
// list has the bytes of the first one around the items of all. Invariants: no item is decoded; lists that
// differ in anything else are refused. Called by the proxy, which asks for the namespaces of a subset one by
// one.
import type { Version } from "../resource-version.ts";
import type { Encoding, ListJoiner, ListJoinerOptions } from "./base/types.ts";
import { JsonListJoiner } from "./json/list-joiner.ts";
import { ProtobufListJoiner } from "./protobuf/list-joiner.ts";

export type { ListJoiner } from "./base/types.ts";

/** @param version of each list; another one is `CODEC_MALFORMED` */
export function createListJoiner(encoding: Encoding, version: Version, options: ListJoinerOptions): ListJoiner {
  return encoding === "json" ? new JsonListJoiner(version) : new ProtobufListJoiner(version, options);
}
