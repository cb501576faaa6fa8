// The webhooks of an operator in the test's own process: it allows every review and remembers it.
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import type { KeyCertificate } from "../../src/base/certificates.ts";
import { allowReview } from "../../src/kube/admission-review.ts";
import { readReview } from "./read-review.ts";

export interface AnsweredReview {
  readonly pod: string;
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
  readonly receivedMs: number;
  readonly answeredMs: number;
}

export interface ReviewServer {
  /** On 127.0.0.1. */
  readonly port: number;
  close(): Promise<void>;
}

/** Starts the webhooks of a pod. Each answered review is appended to `answered`. */
export async function startReviewServer(
  pod: string,
  { certPem, keyPem }: KeyCertificate,
  answered: AnsweredReview[],
): Promise<ReviewServer> {
  const server = createServer({ cert: certPem, key: keyPem }, async (req, res) => {
    const receivedMs = Date.now();
    const chunks: Buffer[] = [];
    for await (const chunk of req) chunks.push(chunk as Buffer);
    const subject = readReview(Buffer.concat(chunks));
    if (subject === undefined) return void res.writeHead(400).end();
    const { uid, namespace, name } = subject;
    answered.push({ pod, uid, namespace, name, receivedMs, answeredMs: Date.now() });
    res.setHeader("content-type", "application/json");
    res.end(JSON.stringify(allowReview(subject)));
  });
  await new Promise<void>((resolve, reject) => server.once("error", reject).listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
}
