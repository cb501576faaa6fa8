// A tunnel: CONNECT host:port, then TLS of the client with the server, which stays closed to this proxy.
// Invariants: nothing reaches the server before the client's first message names it. When one connection ends,
// the other ends soon after. A tunnel holds no slot of a limit beyond its start.
import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { Transform } from "node:stream";
import { onAbort } from "../../base/abort.ts";
import type { Clock } from "../../base/clock.ts";
import type { ProcessContext } from "../../base/process-context.ts";
import { type AdmitDeps, admit, clusterNameOf, refusedAddresses } from "./admit.ts";
import { readClientHello, serverNameProblem } from "./client-hello.ts";
import type { Dial } from "./dial.ts";
import { isServersFault } from "./egress-error.ts";
import { targetOf } from "./target.ts";
import type { Visit } from "./visits.ts";

export interface TunnelDeps extends AdmitDeps, Pick<ProcessContext, "clock" | "log"> {
  readonly dial: Dial;
  /** The longest time without a byte. */
  readonly idleMs: number;
  /** The same once one side has ended. Otherwise the tunnels of clients that gave up would pile up if a server is stuck and never ends its side. */
  readonly halfClosedMs: number;
  /** For the client's first message. */
  readonly helloMs: number;
}

/** While the proxy drains: how long after the server's last byte an answer counts as complete. */
const QUIET_MS = 1_000;

export async function serveTunnel(
  req: IncomingMessage,
  client: Socket,
  head: Buffer,
  deps: TunnelDeps,
  visit: Visit,
): Promise<void> {
  const { clock, dial, log } = deps;
  const target = targetOf("CONNECT", req.url ?? "", {});
  visit.goesTo({ host: target.host, port: target.port }, clusterNameOf(target, deps.session));
  const { permit, mayPass } = await admit("CONNECT", target, deps, visit);
  const startedMs = clock.monotonicMs();
  let upstream: Socket;
  try {
    upstream = await dial.plain(target, visit.signal, refusedAddresses("CONNECT", target, deps));
    permit.settle({ kind: "answered", status: 200, tookMs: clock.monotonicMs() - startedMs });
  } catch (error) {
    if (visit.signal.aborted) permit.settle({ kind: "abandoned", afterMs: clock.monotonicMs() - startedMs });
    else if (isServersFault(error)) permit.settle({ kind: "failed" });
    throw error;
  } finally {
    permit.release();
  }
  endTogether(client, upstream, visit);
  client.write("HTTP/1.1 200 Connection established\r\n\r\n");
  visit.notes.code = 200;
  const first = await firstMessage(client, head, deps, visit.signal);
  if (first === undefined) return; // the client has left
  const problem = serverNameProblem(first.hello, target.host, deps.policies.isAllowList);
  if (problem !== undefined) {
    log.warn(
      { host: target.host, port: target.port, problem },
      "tunnel closed: the client does not speak TLS for the server that it has named",
    );
    visit.decided(problem);
    return visit.over();
  }
  visit.decided("allowed");
  if (mayPass?.() === false) return visit.over();
  visit.noteSent();
  upstream.write(first.bytes);
  boundSilence([client, upstream], deps, visit);
  visit.isQuiet = quietness(client, upstream, clock);
  if (mayPass === undefined) client.pipe(upstream);
  else client.pipe(gated(mayPass, visit)).pipe(upstream);
  upstream.pipe(client);
}

function endTogether(client: Socket, upstream: Socket, visit: Visit): void {
  upstream.on("error", () => undefined); // the close event says the same
  // What one side has sent before its end still reaches the other side. The idle time bounds it.
  upstream.once("close", (hadError) => (hadError ? client.destroy() : client.destroySoon()));
  client.once("close", (hadError) => (hadError ? upstream.resetAndDestroy() : upstream.destroySoon()));
  visit.isTunnel = true;
  visit.notes.bytes = () => upstream.bytesRead;
  const ended = () => {
    if (client.destroyed && upstream.destroyed) visit.over();
  };
  client.once("close", ended);
  upstream.once("close", ended);
  const cut = () => {
    client.destroy();
    // What the kernel has not sent yet must not arrive later.
    upstream.resetAndDestroy();
  };
  if (client.destroyed) cut();
  else onAbort(visit.signal, cut);
}

function boundSilence(sides: readonly Socket[], { idleMs, halfClosedMs }: TunnelDeps, visit: Visit): void {
  for (const side of sides) {
    side.setTimeout(idleMs, () => visit.over());
    side.once("end", () => {
      for (const each of sides) each.setTimeout(halfClosedMs);
    });
  }
}

/** Asks for each chunk: a process that was suspended gets its bytes before its timers. */
function gated(mayPass: () => boolean, visit: Visit): Transform {
  return new Transform({
    transform(chunk, _encoding, done) {
      if (mayPass()) return done(null, chunk);
      visit.over();
      done();
    },
  });
}

type Hello = Exclude<ReturnType<typeof readClientHello>, { kind: "incomplete" }>;

/** Resolves with enough bytes to judge the client by, or undefined if it leaves. */
function firstMessage(
  client: Socket,
  head: Buffer,
  { clock, helloMs }: TunnelDeps,
  signal: AbortSignal,
): Promise<{ readonly hello: Hello; readonly bytes: Buffer } | undefined> {
  return new Promise((resolve) => {
    let bytes = head;
    const timer = clock.after(helloMs, () => settle({ kind: "not-tls" }));
    const settle = (hello: Hello | undefined) => {
      timer.cancel();
      client.off("data", take).off("end", onClientGone).pause();
      signal.removeEventListener("abort", onClientGone);
      resolve(hello && { hello, bytes });
    };
    const look = () => {
      const hello = readClientHello(bytes);
      if (hello.kind !== "incomplete") settle(hello);
    };
    const take = (chunk: Buffer) => {
      bytes = Buffer.concat([bytes, chunk]);
      look();
    };
    const onClientGone = () => {
      client.destroy();
      settle(undefined);
    };
    client.on("data", take).on("end", onClientGone);
    signal.addEventListener("abort", onClientGone, { once: true });
    if (signal.aborted) onClientGone();
    else if (bytes.length > 0) look();
  });
}

/** True once the server has answered all, as far as that can be seen from outside. */
function quietness(client: Socket, upstream: Socket, clock: Clock): () => boolean {
  let isAsking = true;
  let lastMs = clock.monotonicMs();
  const heard = (from: Socket) => () => {
    isAsking = from === client;
    lastMs = clock.monotonicMs();
  };
  client.on("data", heard(client));
  upstream.on("data", heard(upstream));
  return () => !isAsking && clock.monotonicMs() - lastMs >= QUIET_MS;
}
