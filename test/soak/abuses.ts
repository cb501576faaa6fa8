// The requests of dying, killed and badly written clients. Each abuse is one visit that ends before its response does. Abuses are chosen
// by weight, and all randomness comes from the seed.
import type { Farewell, RudeClient } from "./rude-client.ts";

export interface AbuseContext {
  readonly client: RudeClient;
  readonly random: () => number;
  /** A namespace of the subset with many ConfigMaps, and one of another subset. */
  readonly own: string;
  readonly foreign: string;
  /** The namespace and pod that exec reaches. */
  readonly pod: string;
}

type Abuse = (context: AbuseContext) => Promise<void>;

const PROTOBUF = "application/vnd.kubernetes.protobuf";
const EVERYWHERE = "/api/v1/configmaps";
const UPGRADE = { connection: "Upgrade", upgrade: "SPDY/3.1", "x-stream-protocol-version": "v4.channel.k8s.io" };
const WEBSOCKET = {
  connection: "Upgrade",
  upgrade: "websocket",
  "sec-websocket-version": "13",
  "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
  "sec-websocket-protocol": "v5.channel.k8s.io",
};

/** Name, weight and action. */
export const ABUSES: readonly (readonly [name: string, weight: number, abuse: Abuse])[] = [
  ["large list broken off in its body", 8, largeList],
  ["list given up before its answer", 22, unreadList],
  ["watch broken off after some events", 22, watchSome],
  ["idle watch broken off", 10, watchIdle],
  ["write given up", 10, write],
  ["write with half a body", 8, halfBody],
  ["upgrade given up in its handshake", 6, halfUpgrade],
  ["tunnel broken off", 4, tunnel],
  ["slow request", 5, slowHead],
  ["requests in a pipeline", 3, pipeline],
  ["no TLS, or half a handshake", 2, noTls],
];

const TOTAL = ABUSES.reduce((sum, [, weight]) => sum + weight, 0);

/** One abuse, chosen by weight. */
export function pickAbuse(random: () => number): { readonly name: string; readonly run: Abuse } {
  let rest = random() * TOTAL;
  for (const [name, weight, run] of ABUSES) {
    rest -= weight;
    if (rest < 0) return { name, run };
  }
  return { name: "", run: noTls };
}

const pick = <T>({ random }: AbuseContext, from: readonly T[]): T => from[Math.floor(random() * from.length)] as T;
const farewell = (context: AbuseContext) => pick<Farewell>(context, ["reset", "reset", "destroy", "end"]);
const accept = (context: AbuseContext) => ({ accept: pick(context, ["application/json", PROTOBUF]) });
const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

function largeList(context: AbuseContext): Promise<void> {
  const { client, random } = context;
  return client.visit(async (visit) => {
    visit.write(client.request("GET", EVERYWHERE, accept(context)));
    const enough = 1 + random() * 300_000;
    await visit.until(() => visit.received > enough, 10_000);
    return farewell(context);
  });
}

function unreadList(context: AbuseContext): Promise<void> {
  const { client, random, own, foreign } = context;
  const path = pick(context, [
    `${EVERYWHERE}?limit=50`,
    `/api/v1/namespaces/${own}/configmaps?limit=20`,
    EVERYWHERE,
    `/api/v1/namespaces/${foreign}/configmaps`,
  ]);
  return client.visit(async (visit) => {
    visit.write(client.request("GET", path, accept(context)));
    if (random() < 0.5) await pause(random() * 8);
    return farewell(context);
  });
}

function watchSome(context: AbuseContext): Promise<void> {
  const { client, random, own } = context;
  const start = pick(context, [
    "&resourceVersion=0",
    "",
    "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
  ]);
  const path = pick(context, [EVERYWHERE, `/api/v1/namespaces/${own}/configmaps`]);
  return client.visit(async (visit) => {
    visit.write(client.request("GET", `${path}?watch=1${start}`, accept(context)));
    const enough = 1 + random() * 60_000;
    await visit.until(() => visit.received > enough, 5_000);
    return farewell(context);
  });
}

function watchIdle(context: AbuseContext): Promise<void> {
  const { client, random, own } = context;
  return client.visit(async (visit) => {
    visit.write(client.request("GET", `/api/v1/namespaces/${own}/secrets?watch=1`, accept(context)));
    await visit.until(() => false, random() * 400);
    return farewell(context);
  });
}

function write(context: AbuseContext): Promise<void> {
  const { client, random, own, foreign } = context;
  const namespace = random() < 0.8 ? own : foreign;
  const name = `soak-${Math.floor(random() * 20)}`;
  const body = JSON.stringify({ metadata: { name }, data: { turn: String(random()) } });
  const headers = (type: string) => ({ "content-type": type, "content-length": String(body.length) });
  const path = `/api/v1/namespaces/${namespace}/configmaps`;
  const head = pick(context, [
    client.request("POST", path, headers("application/json")),
    client.request("PATCH", `${path}/${name}`, headers("application/merge-patch+json")),
    client.request("PUT", `${path}/${name}`, headers("application/json")),
  ]);
  return client.visit(async (visit) => {
    visit.write(head + body);
    if (random() < 0.5) await pause(random() * 8);
    return farewell(context);
  });
}

function halfBody(context: AbuseContext): Promise<void> {
  const { client, random, own } = context;
  const framing = pick<Record<string, string>>(context, [
    { "content-length": "70000" },
    { "transfer-encoding": "chunked" },
    { "content-length": "500", expect: "100-continue" },
  ]);
  return client.visit(async (visit) => {
    visit.write(
      client.request("POST", `/api/v1/namespaces/${own}/configmaps`, { "content-type": "application/json", ...framing }),
    );
    const isChunked = "transfer-encoding" in framing;
    for (let index = 0; index < 1 + random() * 4 && !visit.over; index++) {
      visit.write(isChunked ? '5\r\n{"a":\r\n' : '{"metadata":{"name":"half"},');
      await pause(random() * 60);
    }
    return farewell(context);
  });
}

function halfUpgrade(context: AbuseContext): Promise<void> {
  const { client, random, own, pod } = context;
  const path = `/api/v1/namespaces/${own}/pods/${pod}/${pick(context, ["exec?command=cat&stdin=true", "attach?stdin=true", "portforward?ports=80"])}`;
  const head = client.request(random() < 0.5 ? "POST" : "GET", path, pick(context, [UPGRADE, WEBSOCKET]));
  return client.visit(async (visit) => {
    visit.write(random() < 0.4 ? head.slice(0, head.length - 10) : head);
    await pause(random() * 20);
    return farewell(context);
  });
}

function tunnel(context: AbuseContext): Promise<void> {
  const { client, random, own, pod } = context;
  return client.visit(async (visit) => {
    visit.write(client.request("POST", `/api/v1/namespaces/${own}/pods/${pod}/exec?command=cat&stdin=true&stdout=true`, UPGRADE));
    await visit.until(() => visit.head.includes("\r\n\r\n"), 5_000);
    if (visit.head.startsWith("HTTP/1.1 101")) {
      visit.write(new Uint8Array(1 + random() * 40_000));
      const before = visit.received;
      await visit.until(() => visit.received > before, random() * 300);
    }
    return farewell(context);
  });
}

function slowHead(context: AbuseContext): Promise<void> {
  const { client, random, own } = context;
  const text = `${client.request("POST", `/api/v1/namespaces/${own}/configmaps`, { "content-type": "application/json", "content-length": "400" })}{"metadata"`;
  return client.visit(async (visit) => {
    const step = Math.ceil(text.length / 12);
    const stop = random() * text.length * 1.2;
    for (let at = 0; at < Math.min(stop, text.length) && !visit.over; at += step) {
      visit.write(text.slice(at, at + step));
      await pause(20 + random() * 80);
    }
    return farewell(context);
  });
}

function pipeline(context: AbuseContext): Promise<void> {
  const { client, random, own } = context;
  return client.visit(async (visit) => {
    const one = client.request("GET", `/api/v1/namespaces/${own}/configmaps?limit=5`);
    visit.write(one + one + client.request("GET", EVERYWHERE) + one);
    const enough = random() * 40_000;
    await visit.until(() => visit.received > enough, 2_000);
    return farewell(context);
  });
}

function noTls(context: AbuseContext): Promise<void> {
  const { client, random } = context;
  return client.visitRaw(async (socket) => {
    // The start of a ClientHello, or plain HTTP.
    socket.write(random() < 0.5 ? Buffer.from("16030100c8010000c40303", "hex") : "GET /api HTTP/1.1\r\n\r\n");
    await pause(random() * 200);
  });
}
