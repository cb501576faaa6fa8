// metav1.Status as bytes: as a response body and as the ERROR event of a watch, in JSON and protobuf. Field
// numbers are those of the published generated.proto files. Called by the proxy's layers.
import type { Status, StatusDetails } from "../status.ts";
import type { Encoding } from "./base/types.ts";
import { encodeEnvelope, readEnvelope } from "./protobuf/envelope.ts";
import { encodeProtobufFrame } from "./protobuf/frame.ts";
import { BYTES, encodeBytes, encodeNumber, encodeString, encodeVarint, fieldsOf } from "./protobuf/wire.ts";

const MESSAGE = 3;

/** A Status as a response body: JSON with a newline, or `k8s\0` and runtime.Unknown. */
export function encodeStatus(encoding: Encoding, status: Status): Uint8Array {
  if (encoding === "json") return Buffer.from(`${JSON.stringify(status)}\n`);
  return encodeEnvelope(status, encodeMessage(status));
}

/** A whole watch frame of type ERROR that carries the Status. client-go lists again when its code is 410. */
export function encodeErrorFrame(encoding: Encoding, status: Status): Uint8Array {
  if (encoding === "json") return Buffer.from(`${JSON.stringify({ type: "ERROR", object: status })}\n`);
  return encodeProtobufFrame("ERROR", encodeStatus("protobuf", status));
}

/** The message of a Status in a response body; "" if the body cannot be read. */
export function readStatusMessage(encoding: Encoding, body: Uint8Array): string {
  try {
    if (encoding === "json") return String(JSON.parse(Buffer.from(body).toString("utf8")).message ?? "");
    for (const field of fieldsOf(readEnvelope(body).raw)) {
      if (field.number === MESSAGE && field.wireType === BYTES) return field.value().toString("utf8");
    }
  } catch {
    // A body that is no Status has no message.
  }
  return "";
}

function encodeMessage({ status, message, reason, details, code }: Status): Buffer {
  return Buffer.concat([
    Buffer.from([1 * 8 + BYTES, ...encodeVarint(0)]), // metadata, empty
    encodeString(2, status),
    encodeString(MESSAGE, message),
    encodeString(4, reason),
    details === undefined ? Buffer.alloc(0) : encodeBytes(5, encodeDetails(details)),
    encodeNumber(6, code),
  ]);
}

function encodeDetails({ name, group, kind, causes = [], retryAfterSeconds, uid }: StatusDetails): Buffer {
  return Buffer.concat([
    encodeString(1, name),
    encodeString(2, group),
    encodeString(3, kind),
    ...causes.map((cause) =>
      encodeBytes(
        4,
        Buffer.concat([encodeString(1, cause.reason), encodeString(2, cause.message), encodeString(3, cause.field)]),
      ),
    ),
    encodeNumber(5, retryAfterSeconds),
    encodeString(6, uid),
  ]);
}
