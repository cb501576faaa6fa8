// A proxy without an operator: a real gRPC stream, hellos with what it holds, deltas, epochs, acknowledgements at once, redirects and
// backoff as the real one has them. A thousand of them share what they decode, since the manager is what is looked at.
import type { ClientDuplexStream } from "@grpc/grpc-js";
import { type BackoffOptions, backoffMs } from "../../../src/base/backoff.ts";
import { systemClock } from "../../../src/base/clock.ts";
import { fieldsOf, messageField, numberField } from "../../../src/manager/snapshot-server/protobuf-fields.ts";
import type { ManagerPass } from "../../../src/proxy/identity/manager-access.ts";
import { openManagerChannel } from "../../../src/proxy/identity/manager-channel.ts";
import { createLeaderFinder } from "../../../src/proxy/session/leader-finder.ts";
import { createChannels } from "../../../src/proxy/session/mesh-channels.ts";
import type { Snapshot } from "../../../src/route/snapshot.ts";
import { loadMeshService } from "../../../src/wire/load-proto.ts";
import type { HelloMessage, ManagerMessage, PodRef, ProxyMessage } from "../../../src/wire/messages.ts";
import { snapshotFromWire, snapshotToWire } from "../../../src/wire/snapshot-codec.ts";
import { applyDelta } from "../../../src/wire/snapshot-delta.ts";

const { Connect: method } = loadMeshService();
if (method === undefined) throw new Error("the contract has no method Connect");
const encode = (message: ProxyMessage): Buffer => method.requestSerialize(message);
const decode = (bytes: Buffer) => method.responseDeserialize(bytes) as ManagerMessage;
/** Stands for the Service: whichever replica is there. */
const SERVICE = "service";
/** Those whose leader ended come back over this time. */
const SPREAD_MS = 1_000;
const BACKOFF: BackoffOptions = { baseMs: 200, maxMs: 2_000 };
const REACH_MS = 2_000;
const TURNED_AWAY_MS = 30;
const ANSWER_MS = 10_000;
const SNAPSHOT = 1; // of ManagerMessage
const DELTA = 3; // of ManagerMessage
const VERSION = 2; // of Snapshot
const DIGEST = 3; // of Snapshot
const HELLO = 1; // of ProxyMessage
const ENFORCED = 5; // of Hello

/** What proxies of one process have been told, by digest. */
export type SharedSnapshots = Map<string, { readonly snapshot: Snapshot; readonly told: Uint8Array }>;

export interface SimulatedProxy {
  readonly pod: PodRef;
  readonly enforced: Snapshot | undefined;
  readonly isServed: boolean;
  /** The epoch of the newest manager that served it. */
  readonly epoch: number;
  readonly counts: { wholes: number; deltas: number; hellos: number; bytes: number };
  /** How many snapshots came from the leader of each epoch. */
  readonly snapshotsOf: ReadonlyMap<number, number>;
  stop(): void;
}

export interface SimulatedProxyOptions {
  readonly pod: PodRef;
  /** Its token. The credentials are those of all proxies of a process: one context of TLS, and a handshake for each connection. */
  readonly pass: ManagerPass;
  /** The service: any replica may answer. Read anew for each try. */
  readonly endpoints: () => readonly string[];
  readonly shared: SharedSnapshots;
  readonly onChange: (proxy: SimulatedProxy) => void;
}

export function startSimulatedProxy(options: SimulatedProxyOptions): SimulatedProxy {
  const { pod, pass, endpoints, shared, onChange } = options;
  const connectTo = (endpoint: string) => openManagerChannel(endpoint === SERVICE ? anyOf(endpoints()) : endpoint, pass);
  const channels = createChannels({ service: SERVICE, connect: connectTo, clock: systemClock });
  const finder = createLeaderFinder(SERVICE, systemClock);
  const counts = { wholes: 0, deltas: 0, hellos: 0, bytes: 0 };
  const snapshotsOf = new Map<number, number>();
  let current: Snapshot | undefined;
  let call: ClientDuplexStream<ProxyMessage | Buffer, Buffer> | undefined;
  let stopped = false;
  let isServed = false;
  let epoch = 0;
  let streamNumber = Date.now();
  let attempt = 0;
  let waiting: NodeJS.Timeout | undefined;

  const proxy: SimulatedProxy = {
    pod,
    counts,
    snapshotsOf,
    get enforced() {
      return current;
    },
    get isServed() {
      return isServed;
    },
    get epoch() {
      return epoch;
    },
    stop() {
      stopped = true;
      clearTimeout(waiting);
      call?.cancel();
      channels.close();
    },
  };

  function hello(): Buffer {
    const { version = 0, digest = "" } = current ?? {};
    streamNumber++;
    counts.hellos++;
    const said: HelloMessage = {
      pod,
      version,
      digest,
      proxyVersion: "simulated",
      enforced: null,
      inDoubt: [],
      stream: streamNumber,
      takesDeltas: true,
      epoch,
      takesEpochs: true,
    };
    const [field] = fieldsOf(encode({ hello: said })) ?? [];
    const told = current && shared.get(current.digest)?.told;
    const enforced = told === undefined ? [] : [messageField(ENFORCED, [told, numberField(VERSION, version)])];
    return messageField(HELLO, [field?.value ?? Buffer.alloc(0), ...enforced]);
  }

  function enforce(snapshot: Snapshot): void {
    if (!shared.has(snapshot.digest)) shared.set(snapshot.digest, { snapshot, told: toldBytes(snapshot) });
    current = { ...snapshot, table: shared.get(snapshot.digest)?.snapshot.table ?? snapshot.table };
    onChange(proxy);
  }

  function takeWhole(bytes: Buffer, value: Uint8Array): void {
    const fields = fieldsOf(value) ?? [];
    const digest = Buffer.from(fields.find(({ number }) => number === DIGEST)?.value ?? []).toString();
    const known = shared.get(digest)?.snapshot;
    counts.wholes++;
    if (known === undefined) {
      const message = decode(bytes);
      if (!("snapshot" in message)) return;
      enforce(snapshotFromWire(message.snapshot));
      send({ ack: { nonce: message.snapshot.nonce, version: message.snapshot.version } });
      return;
    }
    const nonce = lastNumber(fields, 1);
    const version = lastNumber(fields, VERSION);
    enforce({ ...known, version });
    send({ ack: { nonce, version } });
  }

  function take(bytes: Buffer): void {
    counts.bytes += bytes.length;
    const [field] = fieldsOf(bytes) ?? [];
    if (field?.number === SNAPSHOT || field?.number === DELTA) snapshotsOf.set(epoch, (snapshotsOf.get(epoch) ?? 0) + 1);
    if (field?.number === SNAPSHOT) {
      takeWhole(bytes, field.value);
      return;
    }
    const message = decode(bytes);
    if ("welcome" in message && message.welcome) {
      if (message.welcome.epoch < epoch) {
        call?.cancel();
        return;
      }
      epoch = message.welcome.epoch;
      isServed = true;
      channels.served(finder.endpoint);
      attempt = 0;
      send({ promise: { epoch } });
      onChange(proxy);
    } else if ("delta" in message && message.delta) {
      const { nonce, version, baseDigest, digest } = message.delta;
      counts.deltas++;
      if (current?.digest !== baseDigest) {
        send({ nack: { nonce, version, problems: [], needsSnapshot: true } });
        return;
      }
      enforce({ ...(shared.get(digest)?.snapshot ?? applyDelta(current, message.delta)), version });
      send({ ack: { nonce, version } });
    }
  }

  function send(message: ProxyMessage): void {
    call?.write(message);
  }

  function connect(): void {
    if (method === undefined) return;
    const { endpoint } = finder;
    const channel = channels.to(endpoint, pass);
    const opened: ClientDuplexStream<ProxyMessage | Buffer, Buffer> = channel.makeBidiStreamRequest(
      method.path,
      (message: ProxyMessage | Buffer) => (Buffer.isBuffer(message) ? message : encode(message)),
      (bytes: Buffer) => bytes,
      pass.metadata,
    );
    call = opened;
    let redirect: string | undefined;
    let over = false;
    const unanswered = setTimeout(() => finish(), ANSWER_MS);
    // A process that is stopped takes connections and answers nothing on them.
    channel.waitForReady(Date.now() + REACH_MS, (error) => {
      if (error !== undefined) finish();
      // A replica that does not lead says so at once. Hundreds of proxies in one process, unlike real ones, share the cost of long
      // hellos that nobody reads, and would be what is measured.
      else setTimeout(() => over || opened.write(hello()), TURNED_AWAY_MS);
    });
    const finish = (error?: Error) => {
      if (over) return;
      over = true;
      clearTimeout(unanswered);
      opened.cancel();
      const served = isServed;
      isServed = false;
      channels.release(endpoint, redirect !== undefined);
      onChange(proxy);
      if (stopped) return;
      const isFollowed = finder.next({ error, redirect, served });
      const delayMs = served ? Math.random() * SPREAD_MS : backoffMs(attempt++, BACKOFF, Math.random);
      waiting = setTimeout(connect, isFollowed ? 0 : delayMs);
    };
    opened.on("data", (bytes: Buffer) => {
      if (over) return;
      clearTimeout(unanswered);
      const message = bytes.length < 200 ? decode(bytes) : undefined;
      if (message !== undefined && "redirect" in message && message.redirect) {
        redirect = message.redirect.endpoint || undefined;
        finish();
      } else take(bytes);
    });
    opened.on("error", finish);
    opened.on("end", () => finish());
  }

  // As pods do, they do not all begin in the same millisecond.
  waiting = setTimeout(connect, Math.random() * 200);
  return proxy;
}

function anyOf(endpoints: readonly string[]): string {
  return endpoints[Math.floor(Math.random() * endpoints.length)] ?? "127.0.0.1:1";
}

function toldBytes(snapshot: Snapshot): Uint8Array {
  const enforced = snapshotToWire(snapshot, 0);
  const bytes = encode({
    hello: { pod: null, version: 0, digest: "", proxyVersion: "", enforced, inDoubt: [] },
  });
  const hello = fieldsOf(bytes)?.find(({ number }) => number === HELLO);
  return fieldsOf(hello?.value ?? Buffer.alloc(0))?.find(({ number }) => number === ENFORCED)?.value ?? Buffer.alloc(0);
}

// Numbers on the wire are short here: nonces and versions.
function lastNumber(fields: NonNullable<ReturnType<typeof fieldsOf>>, number: number): number {
  const bytes = [...(fields.findLast((field) => field.number === number)?.whole.subarray(1) ?? [])];
  return bytes.reduce((sum, byte, index) => sum + (byte & 0x7f) * 128 ** index, 0);
}
