// The operator's admission webhook: it writes the name of this pod on each Foo that it defaults. All pods of the operator answer, not only the
// leader, as in controller-runtime.
import { readFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { createServer } from "node:https";
import { join } from "node:path";

/** The annotation with the name of the pod whose webhook has defaulted a Foo. */
export const DEFAULTED_BY = "demo.ctrlmesh.io/defaulted-by";

export interface WebhookOptions {
  readonly host: string;
  readonly port: number;
  /** Has the files tls.crt and tls.key. */
  readonly certDir: string;
  readonly podName: string;
}

/** A Foo is smaller. */
const MAX_BODY_BYTES = 1024 * 1024;

interface Review {
  readonly apiVersion: string;
  readonly request: { readonly uid: string; readonly object: { readonly metadata?: { readonly annotations?: object } } };
}

/** Resolves when the webhook listens. It answers until the signal. */
export async function serveWebhook({ host, port, certDir, podName }: WebhookOptions, signal: AbortSignal): Promise<void> {
  const [cert, key] = ["tls.crt", "tls.key"].map((name) => readFileSync(join(certDir, name)));
  const server = createServer({ cert, key }, async (request, response) => {
    try {
      const answer = answerReview(JSON.parse(await readBody(request)) as Review, podName);
      response.setHeader("content-type", "application/json").end(JSON.stringify(answer));
    } catch {
      response.writeHead(400).end("not an AdmissionReview of a Foo\n");
    }
  });
  await new Promise<void>((resolve, reject) => server.once("error", reject).listen(port, host, resolve));
  signal.addEventListener("abort", () => server.close(), { once: true });
}

function answerReview({ apiVersion, request: { uid, object } }: Review, podName: string): object {
  const add = (path: string, value: unknown) => ({ op: "add", path: `/metadata/annotations${path}`, value });
  const patch = [
    ...(object.metadata?.annotations === undefined ? [add("", {})] : []),
    add(`/${DEFAULTED_BY.replace("/", "~1")}`, podName),
  ];
  const response = {
    uid,
    allowed: true,
    patchType: "JSONPatch",
    patch: Buffer.from(JSON.stringify(patch)).toString("base64"),
  };
  return { apiVersion, kind: "AdmissionReview", response };
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MAX_BODY_BYTES) throw new RangeError(`the body has more than ${MAX_BODY_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}
