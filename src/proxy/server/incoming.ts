// What the server makes of a request before the layers see it: its headers without Node's losses, whether it
// must become a tunnel, and its body as a ByteSource. Invariant: nothing of a body is read before a layer
// opens it, so that a refused upload costs no memory, and a client that waits for `100 Continue` gets it only
// then.
import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import { MeshError } from "../../base/errors.ts";
import type { ByteSource } from "../http/byte-stream.ts";

/** True for a request that may become a tunnel. */
export type MayUpgrade = (method: string, target: string) => boolean;

/** The protocol of a request that must become a tunnel. Other upgrades are ignored (RFC 9110). */
export function upgradeOf(
  { method = "GET", url = "", headers }: IncomingMessage,
  mayUpgrade: MayUpgrade | undefined,
): string | undefined {
  const { upgrade } = headers;
  if (upgrade === undefined || !/^(websocket|spdy\/3\.1)$/i.test(upgrade)) return undefined;
  return mayUpgrade?.(method, url) ? upgrade : undefined;
}

/** The headers, with two Impersonate-Group lines as two groups; Node joins them with commas. */
export function headersOf(req: IncomingMessage): IncomingHttpHeaders {
  const { headers } = req;
  if (!Object.keys(headers).some((name) => name.startsWith("impersonate-"))) return headers;
  const out: IncomingHttpHeaders = { ...headers };
  for (const [name, values] of Object.entries(req.headersDistinct)) {
    if (name.startsWith("impersonate-") && values !== undefined) out[name] = values;
  }
  return out;
}

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
      let isOver = false;
      const onBroken = () => {
        if (isOver) return;
        isOver = true;
        sink.abort(new MeshError("REQUEST_BODY_BROKEN", "reading the request's body: the client broke it off"));
      };
      sendContinue();
      req.on("data", (chunk: Buffer) => {
        if (!isOver && !sink.write(chunk)) req.pause();
      });
      req.on("end", () => {
        if (isOver) return;
        isOver = true;
        sink.end();
      });
      req.on("error", onBroken);
      req.on("close", onBroken);
      return {
        resume() {
          if (!isOver) req.resume();
        },
        cancel() {
          isOver = true;
          req.resume(); // the rest is read and dropped, so that the client sees the answer
        },
      };
    },
    cancel: () => void req.resume(),
  };
}
