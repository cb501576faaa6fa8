// Finds ObjectMeta's field 17, managedFields, in protobuf messages. A cut changes the length of every message
// around it, so each level returns the edits inside it and the edit of its own header.
import { type Edit, savedBytes } from "../base/bytes.ts";
import { codecError, isListType, isStatusType } from "../base/types.ts";
import { readEnvelope } from "./envelope.ts";
import { eventOf, FRAME_PREFIX_BYTES, framePrefix } from "./frame.ts";
import { BYTES, ENVELOPE_PREFIX, encodeHeader, FieldCursor } from "./wire.ts";

const MANAGED_FIELDS = 17;

/** The edits between two positions of the bytes. */
type FindEdits = (bytes: Buffer, start: number, end: number) => Edit[];

export function objectCuts(bytes: Buffer): readonly Edit[] {
  return bodyEdits(bytes, 0, bytes.length);
}

/** An item of a list has no envelope of its own. */
export function createElementCuts(): (element: Buffer) => readonly Edit[] {
  return (element) => objectEdits(element, 0, element.length);
}

/** The edits in a watch event, with those of its length prefix. */
export function frameCuts(frame: Buffer): readonly Edit[] {
  const event = eventOf(frame);
  const edits = extensionEdits(frame, FRAME_PREFIX_BYTES, frame.length);
  if (edits.length === 0) return edits;
  const replacement = framePrefix(event.length - savedBytes(edits));
  return [{ start: 0, end: FRAME_PREFIX_BYTES, replacement }, ...edits];
}

const metaEdits: FindEdits = (bytes, start, end) => {
  const edits: Edit[] = [];
  forEachField(bytes, start, end, ({ number, fieldStart, valueEnd }) => {
    if (number === MANAGED_FIELDS) edits.push({ start: fieldStart, end: valueEnd });
  });
  return edits;
};
const objectEdits = within(1, metaEdits);
const listEdits = within(2, objectEdits);
const rawObjectEdits = within(2, objectEdits);
const rawListEdits = within(2, listEdits);
const extensionEdits = within(
  2,
  within(1, (bytes, start, end) => bodyEdits(bytes, start, end)),
);

function bodyEdits(bytes: Buffer, start: number, end: number): Edit[] {
  const { type } = readEnvelope(bytes.subarray(start, end));
  if (isStatusType(type)) return [];
  const find = isListType(type) ? rawListEdits : rawObjectEdits;
  return find(bytes, start + ENVELOPE_PREFIX.length, end);
}

/** The edits in all fields of this number, and the new length of each. */
function within(wanted: number, find: FindEdits): FindEdits {
  return (bytes, start, end) => {
    const edits: Edit[] = [];
    forEachField(bytes, start, end, ({ number, wireType, fieldStart, valueStart, valueEnd }) => {
      const inner = number === wanted && wireType === BYTES ? find(bytes, valueStart, valueEnd) : [];
      if (inner.length === 0) return;
      edits.push({
        start: fieldStart,
        end: valueStart,
        replacement: encodeHeader(number, valueEnd - valueStart - savedBytes(inner)),
      });
      edits.push(...inner);
    });
    return edits;
  };
}

function forEachField(bytes: Buffer, start: number, end: number, onField: (field: FieldCursor) => void): void {
  const fields = new FieldCursor().reset(bytes, start, end);
  while (fields.next()) onField(fields);
  if (fields.incomplete) throw codecError("CODEC_MALFORMED", "stripping protobuf: a message ends inside a field");
}
