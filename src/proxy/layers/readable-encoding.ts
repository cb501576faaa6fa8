// How a reply can be read and filtered, by its own headers. Used wherever a reply's body is looked into.
import { encodingOf } from "../../kube/codec/content-negotiation.ts";
import type { Encoding } from "../../kube/codec/types.ts";
import type { Reply } from "../http/handler.ts";

/** The encoding of the reply's body; undefined if it cannot be read (another type, or compressed). */
export function readableEncoding({ headers }: Reply): Encoding | undefined {
  const coding = headers["content-encoding"];
  if (coding !== undefined && coding !== "identity") return undefined;
  const type = headers["content-type"];
  const encoding = encodingOf(typeof type === "string" ? type : "");
  return encoding === "json" || encoding === "protobuf" ? encoding : undefined;
}
