// Reading a request's body within bounds: of one body, and of all that are held at a time. Invariant: bytes are counted when they
// arrive and given back when the request has been answered, so memory stays bounded whoever sends how much; who sends slowly
// holds little. Called by serve-review.ts.
import type { IncomingMessage } from "node:http";
import { StatusError } from "../../kube/status.ts";

/** Bytes that may be held at a time. */
export interface ByteBudget {
  /** False if there is no room. */
  take(bytes: number): boolean;
  give(bytes: number): void;
}

export function createByteBudget(maxBytes: number): ByteBudget {
  let left = maxBytes;
  return {
    take(bytes) {
      if (bytes > left) return false;
      left -= bytes;
      return true;
    },
    give(bytes) {
      left += bytes;
    },
  };
}

export interface HeldBody {
  readonly bytes: Uint8Array;
  /** Gives the bytes back to the budget. Once. */
  release(): void;
}

/**
 * Reads it to its end.
 * @throws StatusError `RequestEntityTooLarge`, `TooManyRequests`, or `BadRequest` if the client breaks off
 */
export async function readBody(req: IncomingMessage, maxBytes: number, budget: ByteBudget): Promise<HeldBody> {
  const tooLarge = () => new StatusError("RequestEntityTooLarge", `ctrlmesh: a review may have ${maxBytes} bytes at most`);
  if (Number(req.headers["content-length"] ?? 0) > maxBytes) throw tooLarge();
  const chunks: Buffer[] = [];
  let held = 0;
  try {
    for await (const chunk of req as AsyncIterable<Buffer>) {
      if (held + chunk.length > maxBytes) throw tooLarge();
      if (!budget.take(chunk.length)) throw busy();
      held += chunk.length;
      chunks.push(chunk);
    }
  } catch (error) {
    budget.give(held);
    if (error instanceof StatusError) throw error;
    throw new StatusError("BadRequest", "ctrlmesh: the body broke off", undefined, { cause: error });
  }
  return { bytes: Buffer.concat(chunks, held), release: () => budget.give(held) };
}

/** The API server tries again after this time, as long as its own timeout lasts. */
const RETRY_AFTER_SECONDS = 1;

function busy(): StatusError {
  const details = { retryAfterSeconds: RETRY_AFTER_SECONDS };
  return new StatusError("TooManyRequests", "ctrlmesh: too many reviews at a time", details);
}
