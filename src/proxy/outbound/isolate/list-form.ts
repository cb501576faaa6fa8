// What lists by namespace become: one list, or what a watch begins with. Pure. Called by by-namespace.ts.

import { createListJoiner, type Encoding, type ListJoiner } from "../../../kube/codec/codec.ts";
import { createEventJoiner } from "../../../kube/codec/list-events.ts";
import type { Version } from "../../../kube/resource-version.ts";
import type { ResourceCall } from "../../call/call.ts";
import { type AskedList, askedInitialEvents, askedList } from "./asked-list.ts";
import { takesBookmarks } from "./catch-up.ts";

export interface ListForm {
  readonly asked: AskedList;
  /** Each object becomes a watch event. */
  readonly isEvents: boolean;
  /** Bound of the whole answer; undefined if it is streamed. */
  maxBytesOf(encoding: Encoding): number | undefined;
  createJoiner(encoding: Encoding, version: Version): ListJoiner;
}

/** A protobuf list is held until its length is known. */
const MAX_HELD_BYTES = 4 * 1024 * 1024;

/** Undefined if lists by namespace cannot answer this list. */
export function listForm(call: ResourceCall): ListForm | undefined {
  const asked = askedList(call);
  return (
    asked && {
      asked,
      isEvents: false,
      maxBytesOf: (encoding) => (encoding === "protobuf" ? MAX_HELD_BYTES : undefined),
      createJoiner: (encoding, version) => createListJoiner(encoding, version, { maxHeldBytes: MAX_HELD_BYTES }),
    }
  );
}

/** Undefined if this watch cannot begin with lists by namespace. */
export function eventsForm(call: ResourceCall): ListForm | undefined {
  const asked = askedInitialEvents(call);
  return (
    asked && {
      asked,
      isEvents: true,
      maxBytesOf: () => undefined,
      createJoiner: (encoding, version) => createEventJoiner(encoding, version, { hasBookmark: takesBookmarks(call) }),
    }
  );
}
