// The postStart hook of a proxy that is a plain container: the kubelet starts the operator only when the hook has ended. Invariant: the
// hook never gives up, since the kubelet would then start the operator.
import { get } from "node:http";
import { type Clock, sleep } from "../../base/clock.ts";

const PAUSE_MS = 200;
const ANSWER_MS = 5_000;

export interface WaitReadyOptions {
  /** Of the health listener on the loopback. */
  readonly port: number;
  readonly clock: Clock;
  /** Called with each new reason to wait. */
  readonly say: (reason: string) => void;
}

/** Resolves once /readyz answers 200. */
export async function waitReady({ port, clock, say }: WaitReadyOptions): Promise<void> {
  let last: string | undefined;
  for (;;) {
    const reason = await notReady(port);
    if (reason === undefined) return;
    if (reason !== last) say(`waiting: ${reason}`);
    last = reason;
    await sleep(clock, PAUSE_MS);
  }
}

function notReady(port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const request = get({ host: "127.0.0.1", port, path: "/readyz", agent: false, timeout: ANSWER_MS }, (response) => {
      let body = "";
      response.setEncoding("utf8");
      response.on("data", (text: string) => {
        body += text;
      });
      response.on("end", () => resolve(response.statusCode === 200 ? undefined : body || `status ${response.statusCode}`));
      response.on("error", (error) => resolve(error.message));
    });
    request.on("timeout", () => request.destroy(new Error("no answer")));
    request.on("error", (error) => resolve(error.message));
  });
}
