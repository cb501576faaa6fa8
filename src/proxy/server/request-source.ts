// The body of an incoming request as a ByteSource. Invariant: nothing is read before a layer opens it, so a refused
// upload costs no memory; a client that waits for `100 Continue` gets it only then. Called by the traffic server.
import type { IncomingMessage } from "node:http";
import { MeshError } from "../../base/errors.ts";
import type { ByteSource } from "../http/byte-stream.ts";

/** True if the request announces a body. */
export function hasBody({ headers }: IncomingMessage): boolean {
  if (headers["transfer-encoding"] !== undefined) return true;
  const length = headers["content-length"];
  return length !== undefined && length !== "0";
}

/**
 * The body.
 * @param sendContinue called once, when a layer opens the body
 */
export function requestSource(req: IncomingMessage, sendContinue: () => void): ByteSource {
  return {
    open(sink) {
      let over = false;
      const broken = () => {
        if (over) return;
        over = true;
        sink.abort(new MeshError("REQUEST_BODY_BROKEN", "reading the request's body: the client broke it off"));
      };
      sendContinue();
      req.on("data", (chunk: Buffer) => {
        if (!over && !sink.write(chunk)) req.pause();
      });
      req.on("end", () => {
        if (over) return;
        over = true;
        sink.end();
      });
      req.on("error", broken);
      req.on("close", broken);
      return {
        resume: () => void (over || req.resume()),
        cancel() {
          over = true;
          req.resume(); // the rest is read and dropped, so that the client sees the answer
        },
      };
    },
    cancel: () => void req.resume(),
  };
}
