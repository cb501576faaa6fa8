// The reviews that the pods of test/operators/go-webhooks have answered, and whose they were: the judge of the tests of an operator's webhooks.
// Pure.

/** A line of the operator's output. */
export interface Review {
  readonly pod: string;
  readonly review: "default" | "validate" | "convert";
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
  readonly operation: string;
  readonly dryRun: boolean;
  readonly atMs: number;
}

/** The reviews in the output of a pod's operator. */
export function readReviews(pod: string, log: string): Review[] {
  return log
    .split("\n")
    .filter((line) => line.startsWith('{"review"') && line.endsWith("}"))
    .map((line) => ({ pod, namespace: "", name: "", operation: "", dryRun: false, ...(JSON.parse(line) as object) }) as Review);
}

/** The uids that were answered more than once. */
export function answeredTwice(reviews: readonly { readonly uid: string }[]): string[] {
  const seen = new Set<string>();
  return reviews
    .map(({ uid }) => uid)
    .filter((uid) => {
      const isAgain = seen.has(uid);
      seen.add(uid);
      return isAgain;
    });
}

/** A namespace's way to a subset. */
export interface Move {
  readonly to: string;
  /** When it was asked for. */
  readonly fromMs: number;
  /** When every pod sends the reviews to the new owner. */
  readonly overMs: number;
}

/** An answered review, and when the request that it is about began. */
export interface JudgedReview {
  readonly pod: string;
  readonly subset: string;
  readonly fromMs: number;
  readonly atMs: number;
}

/**
 * The reviews that a pod answered whose subset did not own the namespace, as text. During a move both subsets may answer.
 * @param moves of the namespace, oldest first; the first is its birth
 * @param reviews of requests in the namespace
 */
export function wrongAnswers(moves: readonly Move[], reviews: readonly JudgedReview[]): string[] {
  return reviews.flatMap(({ subset, fromMs, atMs, pod }) => {
    const last = moves.findLastIndex(({ overMs }) => overMs <= fromMs);
    const possible = moves.filter((move, index) => index === last || (index > last && move.fromMs <= atMs));
    if (possible.some(({ to }) => to === subset)) return [];
    const owners = possible.map(({ to }) => `"${to}"`).join(" or ");
    return [`${pod} of "${subset}" answered at ${atMs} a request from ${fromMs}, when ${owners} owned the namespace`];
  });
}
