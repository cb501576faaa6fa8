// One HTTPS request of an honest client, over kept connections or over one of its own.
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { Agent, request } from "node:https";

export interface Destination {
  readonly host: string;
  readonly port: number;
  readonly caPem: string;
  /** The name in its certificate. */
  readonly serverName: string;
}

export interface Ask {
  readonly method?: string;
  readonly path: string;
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  /** Over a new connection. */
  readonly isNew?: boolean;
}

export interface HttpsClient {
  /** @throws Error unless the status is 2xx */
  ask(options: Ask): Promise<string>;
  close(): void;
}

export function createHttpsClient({ host, port, caPem, serverName }: Destination): HttpsClient {
  // Like an API server: a connection is kept for 90 s.
  const agent = new Agent({ keepAlive: true, maxSockets: 50, timeout: 90_000 });
  return {
    async ask({ method = "GET", path, body, headers = {}, signal, isNew = false }) {
      const call = request({
        host,
        port,
        method,
        path,
        headers,
        signal,
        ca: caPem,
        servername: serverName,
        agent: isNew ? false : agent,
      });
      call.end(body);
      const [response] = (await once(call, "response")) as [IncomingMessage];
      let text = "";
      for await (const chunk of response.setEncoding("utf8")) text += chunk;
      const status = response.statusCode ?? 0;
      if (status < 200 || status > 299) throw Object.assign(new Error(text.slice(0, 80)), { code: status });
      return text;
    },
    close: () => agent.destroy(),
  };
}
