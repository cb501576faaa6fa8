// Which of our two encodings the client prefers, read from Accept as the API server reads it: the clause of the highest
// quality wins, the first one among equals. Only for answers that the proxy makes itself.

export type AnswerEncoding = "json" | "protobuf";

const ENCODING_OF: Readonly<Record<string, AnswerEncoding>> = {
  "application/json": "json",
  "application/*": "json",
  "*/*": "json",
  "application/vnd.kubernetes.protobuf": "protobuf",
};

/** The encoding for our answer; JSON if the client names neither, since every client of Kubernetes reads it. */
export function preferredEncoding(accept: string | undefined): AnswerEncoding {
  let best: AnswerEncoding = "json";
  let bestQuality = 0;
  for (const clause of (accept ?? "").split(",")) {
    const [type = "", ...parameters] = clause.split(";").map((part) => part.trim().toLowerCase());
    const encoding = ENCODING_OF[type];
    const quality = qualityOf(parameters);
    if (encoding === undefined || quality <= bestQuality) continue;
    best = encoding;
    bestQuality = quality;
  }
  return best;
}

function qualityOf(parameters: readonly string[]): number {
  const text = parameters.find((parameter) => parameter.startsWith("q="));
  const quality = text === undefined ? 1 : Number(text.slice(2));
  return Number.isNaN(quality) ? 0 : quality;
}
