// Sends the same request directly and through a proxy and compares the two answers: status, headers and bytes. A case may name
// parts that always differ. Where only a moving resourceVersion may differ, the request is repeated until both sides have the
// same one. Used by the e2e files that prove the proxy invisible.
import { type RawAnswer, type RawRequest, type RawTarget, sendRaw } from "./raw-client.ts";

export type Side = "direct" | "proxied";

export interface Case {
  readonly name: string;
  /** Sent once on each side. A function if each side works on its own object, see `own`. */
  readonly request: RawRequest | ((side: Side) => RawRequest);
  /** Must be in every answer, so that two failures do not count as a success. */
  readonly status?: number;
  /** The request changes something: it is sent once, and uids, times and versions are removed from the answers. */
  readonly writes?: boolean;
}

export interface Seen {
  readonly status: number;
  readonly headers: readonly string[];
  readonly body: string;
  readonly whole: boolean;
  readonly interim: readonly number[];
}

export interface Compared {
  readonly direct: Seen;
  readonly proxied: Seen;
}

/** Differs by connection or by moment. */
const NOT_COMPARED = new Set(["date", "audit-id", "connection", "keep-alive", "transfer-encoding"]);
const ATTEMPTS = 6;

/** A name for this side's own object, with the same length on both sides. */
export function own(side: Side, name: string): string {
  return `${name}-${side === "direct" ? "ddd" : "ppp"}`;
}

/** Sends to both sides. Returns equal answers, or the last unequal ones. */
export async function compare(targets: Readonly<Record<Side, RawTarget>>, each: Case): Promise<Compared> {
  const { request, writes = false } = each;
  const ask = async (side: Side) => {
    const answer = await sendRaw(targets[side], typeof request === "function" ? request(side) : request);
    return seen(answer, writes ? withoutNature : (text) => text);
  };
  for (let attempt = 1; ; attempt++) {
    // Both sides read at the same time, so that they read the same state. Writes could conflict, so they are sent one after the other.
    const [direct, proxied] = writes
      ? [await ask("direct"), await ask("proxied")]
      : await Promise.all([ask("direct"), ask("proxied")]);
    if (writes || attempt === ATTEMPTS || JSON.stringify(direct) === JSON.stringify(proxied)) return { direct, proxied };
  }
}

/** The differences, one on each line; empty if the answers are equal and have the expected status. */
export function difference({ name, status }: Case, { direct, proxied }: Compared): string[] {
  const lines: string[] = [];
  const note = (part: string, one: unknown, two: unknown) => {
    const [direct, proxied] = [JSON.stringify(one), JSON.stringify(two)];
    if (direct !== proxied) lines.push(`${name}: ${part}: ${direct} became ${proxied}`);
  };
  note("status", direct.status, proxied.status);
  note(
    "headers",
    direct.headers.filter((line) => !proxied.headers.includes(line)),
    proxied.headers.filter((line) => !direct.headers.includes(line)),
  );
  note("repeated headers", direct.headers.length, proxied.headers.length);
  note("interim answers", direct.interim, proxied.interim);
  note("end", direct.whole, proxied.whole);
  if (direct.body !== proxied.body) {
    const at = [...direct.body].findIndex((char, index) => char !== proxied.body[index]);
    const from = Math.max(0, at - 40);
    note(`body from byte ${from}`, direct.body.slice(from, from + 200), proxied.body.slice(from, from + 200));
    if (direct.body.length !== proxied.body.length) note("body's length", direct.body.length, proxied.body.length);
  }
  if (status !== undefined && direct.status !== status)
    lines.push(`${name}: expected ${status}, both answer ${direct.status}: ${direct.body.slice(0, 300)}`);
  return lines;
}

function seen({ status, headers, body, whole, interim }: RawAnswer, normal: (text: string) => string): Seen {
  return {
    status,
    headers: headers
      .filter(([name]) => !NOT_COMPARED.has(name))
      .map(([name, value]) => normal(`${name}: ${value}`))
      .sort(),
    body: isCbor(headers) ? sorted(body) : normal(body.toString("latin1")),
    whole,
    interim,
  };
}

function isCbor(headers: RawAnswer["headers"]): boolean {
  return headers.some(([name, value]) => name === "content-type" && value.startsWith("application/cbor"));
}

// The API server writes the fields of a CBOR map in another order each time.
function sorted(body: Buffer): string {
  return Buffer.from(body).sort().toString("latin1");
}

function withoutNature(text: string): string {
  return text
    .replaceAll(/-(ddd|ppp)\b/g, "-own")
    .replaceAll(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, "UID")
    .replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g, "TIME")
    .replaceAll(/("resourceVersion": ?"|resourceVersion: ")\d+/g, "$1VERSION");
}
