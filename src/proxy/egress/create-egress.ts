// The forward proxy for requests to other servers, on loopback. Invariants: every request is admitted by the
// policies in force, and every address is checked; a refusal says in one sentence who refuses; bodies,
// queries and headers are never logged.
import { createServer, type IncomingMessage, type Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { onAbort } from "../../base/abort.ts";
import type { Runnable } from "../../base/lifecycle.ts";
import { createListener, type ListenAddress } from "../../base/listener.ts";
import type { ProcessContext } from "../../base/process-context.ts";
import type { ClusterReach } from "../observe/cluster-reach.ts";
import { dropStalledReader, STALLED_MS } from "../server/serve.ts";
import { type Cidr, createAddressCheck } from "./address-check.ts";
import type { AdmitDeps } from "./admit.ts";
import { createDial, type Dial } from "./dial.ts";
import { EgressError } from "./egress-error.ts";
import { createEgressMetrics } from "./egress-metrics.ts";
import { withReach } from "./reach-of-dial.ts";
import { type RequestDeps, serveRequest } from "./serve-request.ts";
import { serveTunnel, type TunnelDeps } from "./serve-tunnel.ts";
import { createVisits, MAX_OPEN, type Visit, type Visits, type VisitsDeps } from "./visits.ts";

export interface EgressSettings {
  readonly egressListen?: ListenAddress | undefined;
  readonly egressPrivateAddresses: readonly Cidr[];
  readonly drainMs: number;
}

export interface EgressDeps extends AdmitDeps, ProcessContext, Pick<VisitsDeps, "accessLog"> {
  /** Absent: nobody is told which clusters cannot be reached. */
  readonly reach?: ClusterReach | undefined;
  /** Default: dials by the settings. */
  readonly dial?: Dial;
  readonly times?: Partial<EgressTimes>;
  /** Tunnels and requests at a time. */
  readonly maxOpen?: number;
}

interface EgressTimes extends Pick<TunnelDeps, "idleMs" | "halfClosedMs" | "helloMs">, Pick<RequestDeps, "answerMs"> {
  /** How long a client may read nothing of its answer. */
  readonly stalledMs: number;
}

export interface EgressServer extends Runnable {
  readonly listen: ListenAddress;
  readonly port: number;
}

const TIMES: EgressTimes = {
  idleMs: 3_600_000,
  halfClosedMs: 60_000, // an API server's own request timeout: a client that has ended still gets the answer
  helloMs: 10_000,
  answerMs: 300_000,
  stalledMs: STALLED_MS,
};
const MAX_HEADER_BYTES = 64 * 1024;
const HEADERS_TIMEOUT_MS = 30_000;
/** Longer than clients keep idle connections, so that they close first. */
const KEEP_ALIVE_MS = 120_000;

/** Undefined if it is switched off. */
export function createEgress(settings: EgressSettings, deps: EgressDeps): EgressServer | undefined {
  const { egressListen: listen, egressPrivateAddresses, drainMs } = settings;
  if (listen === undefined) return undefined;
  const { registry, clock, accessLog, maxOpen = MAX_OPEN } = deps;
  const dialed = deps.dial ?? createDial({ check: createAddressCheck(egressPrivateAddresses), clock });
  const dial = deps.reach === undefined ? dialed : withReach(dialed, deps.reach, deps.session);
  const metrics = createEgressMetrics(registry, () => deps.session.current?.snapshot.clusters);
  const visits = createVisits({ clock, accessLog, metrics, maxOpen });
  const server = createServer({
    maxHeaderSize: MAX_HEADER_BYTES,
    headersTimeout: HEADERS_TIMEOUT_MS,
    requestTimeout: 0,
    keepAliveTimeout: KEEP_ALIVE_MS,
    noDelay: true,
  });
  // Idle connections are no visits, so `maxOpen` does not bound them.
  server.maxConnections = 2 * maxOpen;
  const listener = createListener(server, "connection");
  serveWith(server, visits, { ...deps, ...TIMES, ...deps.times, dial });
  let port = 0;
  return {
    name: "egress",
    listen,
    get port() {
      return port;
    },
    async start() {
      ({ port } = await listener.listen(listen));
    },
    async stop() {
      await visits.drain(drainMs);
      await listener.close();
    },
  };
}

interface ServeDeps extends TunnelDeps, RequestDeps, EgressTimes {}

function serveWith(server: Server, visits: Visits, deps: ServeDeps): void {
  const { log } = deps;
  /** The unanswered requests of each connection. */
  const waiting = new WeakMap<Socket, Set<Visit>>();
  /** `refuse` answers the request as long as no answer has begun. */
  const serve = async (visit: Visit, work: () => Promise<void>, refuse: (error: EgressError) => void) => {
    try {
      await work();
    } catch (error) {
      if (error instanceof EgressError) {
        visit.decided(error.result);
        Object.assign(visit.notes, { code: error.status, rule: error.rule });
        return refuse(error);
      }
      if (!visit.signal.aborted) log.error({ err: error }, "serving a request to another server failed");
      visit.over();
    }
  };
  const warn = ({ notes: { host } }: Visit) => log.warn({ host }, "a client does not read its answer; closing its connection");
  server.on("request", (req: IncomingMessage, res: ServerResponse) => {
    const visit = visits.begin(req.method ?? "GET");
    const beside = waiting.get(req.socket) ?? new Set();
    waiting.set(req.socket, beside.add(visit));
    onAbort(visit.signal, () => void beside.delete(visit));
    res.once("close", () => visit.over());
    onAbort(visit.signal, () => res.writableFinished || res.destroy());
    dropStalledReader(res, deps.stalledMs, () => warn(visit));
    void serve(
      visit,
      () => serveRequest(req, res, deps, visit),
      (error) => answer(res, error),
    );
  });
  server.on("connect", (req: IncomingMessage, client: Socket, head: Buffer): void => {
    client.on("error", () => undefined); // the close event says the same
    const visit = visits.begin("CONNECT");
    const before = waiting.get(client);
    if (before !== undefined && before.size > 0) {
      // The tunnel's bytes would mix with earlier answers, and Node does not report the connection's end.
      visit.decided("bad-request");
      for (const each of [...before, visit]) each.over();
      client.destroy();
      return;
    }
    client.once("close", () => visit.isTunnel || visit.over());
    onAbort(visit.signal, () => client.destroySoon());
    void serve(
      visit,
      () => serveTunnel(req, client, head, deps, visit),
      (error) => {
        const res = new ServerResponse(req);
        res.assignSocket(client);
        res.once("finish", () => client.destroySoon());
        answer(res, error);
      },
    );
  });
}

function answer(res: ServerResponse, { status, code, message, retryAfterSeconds }: EgressError): void {
  if (res.headersSent) return void res.destroy();
  const body = Buffer.from(`${message}\n`);
  res.shouldKeepAlive = false;
  // Go and Python show no more of the answer to a CONNECT than its reason.
  res.writeHead(status, message.replaceAll(/[^ -~]/g, " "), {
    "content-type": "text/plain; charset=utf-8",
    "content-length": String(body.length),
    "x-ctrlmesh-error": code,
    ...(retryAfterSeconds === undefined ? {} : { "retry-after": String(retryAfterSeconds) }),
  });
  res.end(body);
}
