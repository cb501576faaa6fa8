// Connects to a server. Invariants: the address that is checked is the address that is connected to, so a
// name that changes between two look-ups leads nowhere else; a client that leaves ends the attempt.
import type { LookupAddress } from "node:dns";
import { lookup as lookupName } from "node:dns/promises";
import { isIP, type LookupFunction, type Socket, connect as tcpConnect } from "node:net";
import { createSecureContext, getCACertificates, type SecureContext, connect as tlsConnect } from "node:tls";
import { onAbort } from "../../base/abort.ts";
import type { Clock } from "../../base/clock.ts";
import { errorMessage } from "../../base/errors.ts";
import type { EgressTarget } from "../../policy/policy-request.ts";
import type { AddressCheck } from "./address-check.ts";
import { EgressError } from "./egress-error.ts";
import { createLookups, type Resolve } from "./lookups.ts";

/** For each address, why a rule refuses it, or undefined. */
export type AddressRules = (addresses: readonly string[]) => readonly (EgressError | undefined)[];

const NO_RULES: AddressRules = () => [];

export interface DialOptions {
  readonly check: AddressCheck;
  readonly clock: Clock;
  readonly resolve?: Resolve;
  /** How long resolution, connection and handshake may take together. */
  readonly timeoutMs?: number;
}

export type Dial = ReturnType<typeof createDial>;

type Server = Pick<EgressTarget, "scheme" | "host" | "port">;

const TIMEOUT_MS = 10_000;

export function createDial({ check, clock, resolve = createLookups(lookupBySystem), timeoutMs = TIMEOUT_MS }: DialOptions) {
  let context: SecureContext | undefined;
  const bounded = async <T>(server: Server, signal: AbortSignal, work: (stop: AbortSignal) => Promise<T>): Promise<T> => {
    const stop = new AbortController();
    const giveUp = () => stop.abort(dialError("timeout", server, `no answer within ${timeoutMs} ms`));
    const timer = clock.after(timeoutMs, giveUp);
    const unlink = onAbort(signal, () => stop.abort(signal.reason));
    try {
      return await Promise.race([work(stop.signal), aborted(stop.signal)]);
    } finally {
      timer.cancel();
      unlink();
    }
  };
  const open = async (server: Server, stop: AbortSignal, rules: AddressRules): Promise<Socket> => {
    const addresses = checked(server, await addressesOf(server, resolve, stop), check, rules);
    stop.throwIfAborted();
    const lookup: LookupFunction = (_host, { all }, found) => {
      if (all === true) found(null, [...addresses]);
      else found(null, addresses[0]?.address ?? "", addresses[0]?.family);
    };
    // A literal address is not looked up.
    const host = isIP(server.host) === 0 ? server.host : (addresses[0]?.address ?? "");
    const socket = tcpConnect({ host, port: server.port, lookup, autoSelectFamily: true, allowHalfOpen: true, noDelay: true });
    return ready(socket, "connect", server, stop);
  };
  return {
    /** For a tunnel. @throws EgressError */
    plain: (server: Server, signal: AbortSignal, rules: AddressRules = NO_RULES): Promise<Socket> =>
      bounded(server, signal, (stop) => open(server, stop, rules)),
    /** For requests: with TLS for https, whose certificate is checked. @throws EgressError */
    connect: (server: Server, signal: AbortSignal, rules: AddressRules = NO_RULES): Promise<Socket> =>
      bounded(server, signal, async (stop) => {
        const socket = await open(server, stop, rules);
        if (server.scheme === "http") return socket;
        context ??= createSecureContext({ ca: [...getCACertificates("default"), ...getCACertificates("system")] });
        const { host } = server;
        const name = isIP(host) === 0 ? { servername: host } : {};
        const secured = tlsConnect({ socket, host, ...name, secureContext: context, ALPNProtocols: ["http/1.1"] });
        return ready(secured, "secureConnect", server, stop);
      }),
  };
}

type DialResult = "timeout" | "unreachable" | "address-refused";

function dialError(result: DialResult, { host, port }: Server, text: string, options?: ErrorOptions): EgressError {
  return new EgressError(result, `ctrlmesh egress: connecting to ${host}:${port}: ${text}`, options);
}

async function addressesOf(server: Server, resolve: Resolve, stop: AbortSignal): Promise<readonly LookupAddress[]> {
  const family = isIP(server.host);
  if (family !== 0) return [{ address: server.host, family }];
  try {
    return await resolve(server.host, stop);
  } catch (cause) {
    throw dialError("unreachable", server, `the name cannot be resolved (${errorMessage(cause)})`, { cause });
  }
}

/** The addresses that nothing refuses. @throws EgressError if there is none */
function checked(
  server: Server,
  addresses: readonly LookupAddress[],
  check: AddressCheck,
  rules: AddressRules,
): readonly LookupAddress[] {
  const reachable = addresses.filter(({ address }) => check(address) === undefined);
  const refused = rules(reachable.map(({ address }) => address));
  const allowed = reachable.filter((_, at) => refused[at] === undefined);
  if (allowed.length > 0) return allowed;
  for (const error of refused) if (error !== undefined) throw error;
  const [first] = addresses;
  if (first === undefined) throw dialError("unreachable", server, "the name has no address");
  throw dialError("address-refused", server, `refused, since its address ${first.address} ${check(first.address)}`);
}

/** Resolves at the event. A socket that fails or is no longer wanted is destroyed. */
function ready(socket: Socket, event: "connect" | "secureConnect", server: Server, stop: AbortSignal): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const unlink = onAbort(stop, () => socket.destroy(stop.reason));
    const failed = (cause: Error) => {
      unlink();
      socket.destroy();
      reject(cause instanceof EgressError ? cause : dialError("unreachable", server, causeOf(cause), { cause }));
    };
    socket.once("error", failed);
    socket.once(event, () => {
      unlink();
      socket.off("error", failed);
      resolve(socket);
    });
  });
}

/** Node reports failed attempts for several addresses as one error. */
function causeOf(error: Error): string {
  return error instanceof AggregateError ? error.errors.map(errorMessage).join("; ") : errorMessage(error);
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => onAbort(signal, () => reject(signal.reason)));
}

const lookupBySystem = (host: string) => lookupName(host, { all: true });
