// Frames of HTTP/2 as bytes, for clients that no library would let one be.

/** @param stream 0 for the connection */
export function frame(type: number, flags: number, stream: number, payload: Uint8Array): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

const [DATA, HEADERS, SETTINGS] = [0, 1, 4];
const END_HEADERS = 4;
/** Of HPACK's static table (RFC 7541, appendix A). */
const [METHOD_POST, SCHEME_HTTP] = [0x83, 0x86];

/** A header that goes into no table. */
function literal(name: string, value: string): Buffer {
  return Buffer.concat([Buffer.from([0, name.length]), Buffer.from(name), Buffer.from([value.length]), Buffer.from(value)]);
}

/** What a client says first. */
export const PREFACE = Buffer.concat([Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), frame(SETTINGS, 0, 0, Buffer.alloc(0))]);

/** The beginning of a gRPC call. */
export function callFrame(stream: number, path: string, token?: string): Buffer {
  const fields = [
    literal(":path", path),
    literal(":authority", "a"),
    literal("content-type", "application/grpc"),
    literal("te", "trailers"),
    ...(token === undefined ? [] : [literal("authorization", `Bearer ${token}`)]),
  ];
  return frame(HEADERS, END_HEADERS, stream, Buffer.concat([Buffer.from([METHOD_POST, SCHEME_HTTP]), ...fields]));
}

/** A body of a call, each byte in a frame of its own. */
export function byteFrames(stream: number, body: Uint8Array): Buffer {
  return Buffer.concat(Array.from(body, (byte) => frame(DATA, 0, stream, Uint8Array.of(byte))));
}
