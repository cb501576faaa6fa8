// Reads and decodes the body of a review. Invariant: the budget is charged for memory: for the buffer while
// the body arrives, and before parsing for the parsed value. After parsing, the buffer's part is given back.
import type { FairBudget } from "../../../base/fair-budget.ts";
import type { FairTurns } from "../../../base/fair-turns.ts";
import { createGrowingBytes } from "../../../base/growing-bytes.ts";
import { MAX_REVIEW_BYTES } from "../../../kube/admission-review.ts";
import { type JsonBounds, JsonCost } from "../../../kube/codec/json-cost.ts";
import { StatusError } from "../../../kube/status.ts";
import { decodeReview } from "./admission-review.ts";

// Two objects of 1.5 MB, the most that etcd stores, have 200,000 values if they are mostly lists of names of
// 12 characters, and fewer than 20 levels. A name costs as much as ten values. All annotations have 256 KiB,
// twice that if escaped. A longer text can take seconds to check.
const REVIEW_BOUNDS: JsonBounds = { depth: 100, values: 200_000, names: 20_000, stringBytes: 512 * 1024 };

// Each review may take this much outside of the budget, so that clients that use the whole budget delay only
// large reviews. The places for connections bound the number of reviews: 256 take 32 MiB.
const ORDINARY_BYTES = 128 * 1024;

export interface ReviewMeans {
  /** Bytes of bodies, and of what they become, in memory at a time. */
  readonly budget: FairBudget;
  /** Time of the event loop. */
  readonly turns: FairTurns;
}

interface IncomingBody extends AsyncIterable<Buffer> {
  readonly headers: { readonly "content-length"?: string | undefined };
}

/**
 * @param client the address whose share of the budget, and whose turn, the review takes
 * @throws StatusError `RequestEntityTooLarge`, `TooManyRequests`, or `BadRequest`
 */
export async function readReviewRequest(body: IncomingBody, client: string, { budget, turns }: ReviewMeans) {
  let used = 0;
  let charged = 0;
  const use = (bytes: number) => {
    used += bytes;
    const more = Math.max(0, used - ORDINARY_BYTES) - charged;
    if (more > 0 && !budget.take(client, more)) throw busy();
    charged += more;
    if (more < 0) budget.give(client, -more);
  };
  const release = () => {
    budget.give(client, charged);
    charged = 0;
  };
  try {
    const { bytes, cost } = await readBody(body, use);
    const bufferBytes = used;
    use(cost.parsedBytes);
    const request = await turns.run(client, () => decodeReview(bytes));
    use(-bufferBytes);
    // `charge` is for the answer, until it has left. `release` is called once.
    return { request, charge: use, release };
  } catch (error) {
    release();
    if (error instanceof StatusError) throw error;
    throw new StatusError("BadRequest", "ctrlmesh: the body broke off", undefined, { cause: error });
  }
}

async function readBody(body: IncomingBody, use: (bytes: number) => void) {
  const declared = Number(body.headers["content-length"] ?? MAX_REVIEW_BYTES);
  if (declared > MAX_REVIEW_BYTES) throw tooLarge(`may have ${MAX_REVIEW_BYTES} bytes at most`);
  const growing = createGrowingBytes(declared);
  const cost = new JsonCost(REVIEW_BOUNDS);
  for await (const chunk of body) {
    if (growing.bytes.length + chunk.length > declared) throw tooLarge(`may have ${declared} bytes at most`);
    use(growing.growthBy(chunk.length));
    growing.push(chunk);
    cost.scan(growing.bytes);
    if (cost.excess !== undefined) throw tooLarge(`has ${cost.excess}`);
  }
  return { bytes: growing.bytes, cost };
}

function tooLarge(what: string): StatusError {
  return new StatusError("RequestEntityTooLarge", `ctrlmesh: a review ${what}`);
}

/** The API server tries again within its own timeout. */
function busy(): StatusError {
  return new StatusError("TooManyRequests", "ctrlmesh: too many reviews at a time", { retryAfterSeconds: 1 });
}
