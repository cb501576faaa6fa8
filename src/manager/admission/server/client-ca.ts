// The CAs of the clients that may call the webhooks (`--webhook-client-ca`), from a file. Invariant: without
// a readable file the manager does not start, and later the last good one stays.
import type { Clock, Timer } from "../../../base/clock.ts";
import { createLastGoodFile } from "../../../base/last-good-file.ts";
import type { Logger } from "../../../base/log.ts";
import { readCertificates } from "../../../base/pem.ts";

export type ClientCa = ReturnType<typeof createClientCa>;

/** A kubelet replaces a mounted file within a minute or two. */
const READ_MS = 10_000;

export function createClientCa({ file, clock, log }: { file: string; clock: Clock; log: Logger }) {
  const parse = (text: string) => {
    readCertificates(text, file);
    return text;
  };
  const content = createLastGoodFile({ file, name: "the CA of the webhooks' clients", code: "WEBHOOK_CLIENT_CA", parse, log });
  let pem: string | undefined;
  let timer: Timer | undefined;
  let isOver = false;
  return {
    /** PEM; undefined before the start. */
    get pem() {
      return pem;
    },
    /** @throws MeshError `WEBHOOK_CLIENT_CA` if the file has no certificates */
    async start(onChange: () => void) {
      pem = await content.current();
      const read = async () => {
        const next = await content.current();
        if (isOver) return;
        if (next !== pem) {
          pem = next;
          onChange();
        }
        timer = clock.after(READ_MS, () => void read());
      };
      await read();
    },
    stop() {
      isOver = true;
      timer?.cancel();
    },
  };
}
