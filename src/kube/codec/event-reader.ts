// Reads the name of an Event and the object that it is about. Invariant: for an Event that two readers may read
// differently the result is undefined.
import { isMeshError } from "../../base/errors.ts";
import { asBuffer } from "./base/bytes.ts";
import { codecError, type Encoding, isCodecError } from "./base/types.ts";
import { JsonPicker, type Picked } from "./json/picker.ts";
import { readEnvelope } from "./protobuf/envelope.ts";
import { BYTES, fieldsOf } from "./protobuf/wire.ts";

/** The field that names the subject: `involvedObject` in core/v1, `regarding` in events.k8s.io/v1. */
export type SubjectField = "involvedObject" | "regarding";

/** The object that an Event is about. "" stands for a missing field. */
export type EventSubject = Readonly<Record<"apiVersion" | "kind" | "namespace" | "name", string>>;

export interface ReadEvent {
  readonly name: string;
  readonly subject: EventSubject;
}

export function readEvent(encoding: Encoding, field: SubjectField, body: Uint8Array): ReadEvent | undefined {
  try {
    return encoding === "json" ? readJson(field, body) : readProtobuf(field, body);
  } catch (error) {
    if (isCodecError(error) || isMeshError(error, "BAD_REQUEST")) return undefined;
    throw error;
  }
}

const REFERENCE_TEXTS = { apiVersion: "text", kind: "text", namespace: "text", name: "text" } as const;

function readJson(field: SubjectField, body: Uint8Array): ReadEvent | undefined {
  const picker = new JsonPicker({ metadata: { name: "text" }, [field]: REFERENCE_TEXTS });
  picker.scan(asBuffer(body));
  const { picked } = picker;
  const [metadata, subject] = [picked?.metadata, picked?.[field]];
  if (typeof metadata !== "object" || typeof subject !== "object") return undefined;
  const { apiVersion, kind, namespace, name } = subject;
  return {
    name: textOf(metadata.name),
    subject: { apiVersion: textOf(apiVersion), kind: textOf(kind), namespace: textOf(namespace), name: textOf(name) },
  };
}

function textOf(value: Picked[string] | undefined): string {
  return typeof value === "string" ? value : "";
}

// The field numbers of generated.proto, in Event (core/v1 and events/v1), core/v1 ObjectReference and ObjectMeta.
const METADATA = 1;
const SUBJECT: Readonly<Record<SubjectField, number>> = { involvedObject: 2, regarding: 8 };
const REFERENCE_FIELDS = { kind: 1, namespace: 2, name: 3, apiVersion: 5 };
const METADATA_FIELDS = { name: 1 };

function readProtobuf(field: SubjectField, body: Uint8Array): ReadEvent {
  const { raw } = readEnvelope(body);
  const subject = onlyField(raw, SUBJECT[field]);
  const text = (message: Buffer, number: number) => onlyField(message, number).toString("utf8");
  return {
    name: text(onlyField(raw, METADATA), METADATA_FIELDS.name),
    subject: {
      apiVersion: text(subject, REFERENCE_FIELDS.apiVersion),
      kind: text(subject, REFERENCE_FIELDS.kind),
      namespace: text(subject, REFERENCE_FIELDS.namespace),
      name: text(subject, REFERENCE_FIELDS.name),
    },
  };
}

/** Empty if the field is missing. @throws MeshError for two values: some decoders merge them, others take the last. */
function onlyField(message: Buffer, number: number): Buffer {
  let found: Buffer | undefined;
  for (const field of fieldsOf(message)) {
    if (field.number !== number) continue;
    if (found !== undefined || field.wireType !== BYTES)
      throw codecError("CODEC_AMBIGUOUS", `reading an Event: field ${number} cannot be read with certainty`);
    found = field.value();
  }
  return found ?? message.subarray(message.length);
}
