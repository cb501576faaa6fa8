// The plain HTTPS client of the contract, with undici and JSON. It shares no code with the product, so that the same assertions
// hold for localkube and for the real API server.
import { Agent, request } from "undici";

/** An API server under test. */
export interface Target {
  readonly server: string;
  readonly caPem: string;
  /** Bearer token of a user in system:masters. */
  readonly token: string;
  stop(): Promise<void>;
}

// biome-ignore lint/suspicious/noExplicitAny: assertions check the answers, not types
export type Body = any;

export interface Answer {
  readonly code: number;
  readonly body: Body;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

export interface CallOptions {
  readonly body?: unknown;
  /** Default application/json. */
  readonly type?: string;
  readonly accept?: string;
  /** Null: the request has no token. */
  readonly token?: string | null;
  readonly userAgent?: string;
}

export interface WatchEvent {
  readonly type: string;
  readonly object: Body;
}

export interface Watch {
  readonly events: readonly WatchEvent[];
  /** Waits until an event satisfies the test. Earlier events count. */
  until(test: (event: WatchEvent) => boolean): Promise<WatchEvent>;
  /** Resolves when the server ends the stream. */
  readonly ended: Promise<void>;
  close(): void;
}

export interface Client {
  call(method: string, path: string, options?: CallOptions): Promise<Answer>;
  get(path: string, options?: CallOptions): Promise<Answer>;
  post(path: string, body: unknown, options?: CallOptions): Promise<Answer>;
  put(path: string, body: unknown, options?: CallOptions): Promise<Answer>;
  patch(path: string, type: string, body: unknown, options?: CallOptions): Promise<Answer>;
  delete(path: string, body?: unknown): Promise<Answer>;
  watch(path: string, options?: CallOptions): Promise<Watch>;
  close(): Promise<void>;
}

export const JSON_PATCH = "application/json-patch+json";
export const MERGE_PATCH = "application/merge-patch+json";
export const STRATEGIC_PATCH = "application/strategic-merge-patch+json";
export const APPLY_PATCH = "application/apply-patch+yaml";

const WAIT_MS = 20_000;

export function createClient(target: Target): Client {
  const dispatcher = new Agent({ connect: { ca: target.caPem }, connections: 64, bodyTimeout: 0 });

  function headersOf({
    body,
    type = "application/json",
    accept = "application/json",
    token = target.token,
    userAgent = "contract/1.0",
  }: CallOptions) {
    return {
      accept,
      "user-agent": userAgent,
      ...(token === null ? {} : { authorization: `Bearer ${token}` }),
      ...(body === undefined ? {} : { "content-type": type }),
    };
  }

  async function call(method: string, path: string, options: CallOptions = {}): Promise<Answer> {
    const { body } = options;
    const text = body === undefined ? null : typeof body === "string" || Buffer.isBuffer(body) ? body : JSON.stringify(body);
    const response = await request(target.server + path, {
      dispatcher,
      method: method as "GET",
      headers: headersOf(options),
      body: text,
    });
    const bytes = await response.body.text();
    const isJson = String(response.headers["content-type"] ?? "").includes("json");
    return { code: response.statusCode, body: isJson ? JSON.parse(bytes) : bytes, headers: response.headers };
  }

  return {
    call,
    get: (path, options) => call("GET", path, options),
    post: (path, body, options) => call("POST", path, { ...options, body }),
    put: (path, body, options) => call("PUT", path, { ...options, body }),
    patch: (path, type, body, options) => call("PATCH", path, { ...options, type, body }),
    delete: (path, body) => call("DELETE", path, { body }),
    watch: (path, options = {}) => openWatch(dispatcher, target.server + path, headersOf(options)),
    close: () => dispatcher.destroy(),
  };
}

async function openWatch(dispatcher: Agent, url: string, headers: Record<string, string>): Promise<Watch> {
  const abort = new AbortController();
  const response = await request(url, { dispatcher, headers, signal: abort.signal });
  if (response.statusCode !== 200) throw new Error(`watch answered ${response.statusCode}: ${await response.body.text()}`);
  const events: WatchEvent[] = [];
  const waiters = new Set<() => void>();
  const ended = (async () => {
    let rest = "";
    try {
      for await (const chunk of response.body) {
        const lines = (rest + String(chunk)).split("\n");
        rest = lines.pop() ?? "";
        for (const line of lines) if (line !== "") events.push(JSON.parse(line) as WatchEvent);
        for (const wake of waiters) wake();
      }
    } catch {
      // closed by the test
    }
  })();
  return {
    events,
    ended,
    close: () => abort.abort(),
    until: (test) =>
      new Promise((resolve, reject) => {
        const timer = setTimeout(() => reject(new Error(`no such event; got ${JSON.stringify(events.map(brief))}`)), WAIT_MS);
        const look = () => {
          const found = events.find(test);
          if (found === undefined) return;
          clearTimeout(timer);
          waiters.delete(look);
          resolve(found);
        };
        waiters.add(look);
        look();
      }),
  };
}

export function brief({ type, object }: WatchEvent): string {
  return `${type} ${object.metadata?.name ?? object.message ?? object.metadata?.resourceVersion ?? ""}`;
}

/** Repeats `attempt` until it does not throw. */
export async function eventually<T>(attempt: () => Promise<T>): Promise<T> {
  const deadline = performance.now() + WAIT_MS;
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (performance.now() > deadline) throw error;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}
