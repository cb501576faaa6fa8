// A process with the part of the proxy that serves other clusters, and the operator that uses it: informers for all clusters, which
// retry soon, and requests to a good cluster and to home. Prints a line of JSON with what it measured.
import { systemClock } from "../../../src/base/clock.ts";
import { discardBody, readBody } from "../../../src/proxy/http/byte-stream.ts";
import { snapshot, subset, table } from "../route-table.ts";
import { serveClusters } from "../served-clusters.ts";

interface Asked {
  readonly hostile: readonly { readonly url: string; readonly ca: string }[];
  readonly good: { readonly url: string; readonly ca: string };
  readonly seconds: number;
  /** Of each hostile cluster. */
  readonly accept?: string;
}

const { hostile, good, seconds, accept = "application/json" } = JSON.parse(process.argv[2] ?? "") as Asked;
const PATHS = ["/api/v1/configmaps", "/api/v1/namespaces", "/apis/apps/v1/deployments", "/apis/example.com/v1/examples"];
const WATCHES = PATHS.map((path) => `${path}?watch=1&resourceVersion=1`);
const RETRY_MS = 250;

const world = serveClusters({ clock: systemClock, home: { leftMs: () => 8_000, authorization: "Bearer of-home" } });
const servers = [...hostile.map((server, index) => ({ name: `bad-${index}`, ...server })), { name: "good", ...good }];
const own = table([subset("blue")], { own: [0], theirs: [] });
world.enforcers.enforce(
  snapshot(table([], {}), {
    subset: "blue",
    clusters: servers.map(({ name, url, ca }, index) => ({
      name,
      servers: [`127.0.0.1:${index + 1}`],
      drainMs: 1_000,
      owner: "",
      isFenced: true,
      upstream: { url, ca, serverName: "localhost" },
    })),
    clusterTables: new Map(servers.map(({ name }) => [name, own])),
  }),
);

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const answers = new Map<string, number>();
const note = (answer: string) => answers.set(answer, (answers.get(answer) ?? 0) + 1);
let message = "";
let isOver = false;

/** One list or watch, until it breaks. */
async function inform(target: string): Promise<void> {
  const { reply } = world.send("GET", target, { headers: { accept } });
  const { status, body } = await reply;
  note(String(status));
  if (status === 503 && body instanceof Uint8Array) {
    const text = Buffer.from(body).toString();
    if (text.includes("is not asked for objects")) message = text;
  }
  if (body === null || body instanceof Uint8Array) return;
  await new Promise<void>((resolve) => {
    body.open({
      write: () => true,
      end: resolve,
      abort() {
        note("broken");
        resolve();
      },
    });
  });
}
for (let index = 0; index < hostile.length; index++)
  for (const path of [...PATHS, ...WATCHES])
    void (async () => {
      while (!isOver) {
        await inform(`/_ctrlmesh/clusters/bad-${index}${path}`).catch(() => note("error"));
        await pause(RETRY_MS);
      }
    })();

const times = { good: [] as number[], home: [] as number[] };
let [goodFailed, peakBytes] = [0, 0];
async function ask(kind: "good" | "home", target: string): Promise<void> {
  const started = performance.now();
  const { status, body } = await world.send("GET", target).reply;
  if (kind === "good") await readBody(body, 10_000_000).catch(() => goodFailed++);
  else discardBody(body);
  if (status !== 200) goodFailed++;
  times[kind].push(performance.now() - started);
}
const until = performance.now() + seconds * 1_000;
while (performance.now() < until) {
  await ask("home", "/api/v1/pods");
  await ask("good", "/_ctrlmesh/clusters/good/api/v1/namespaces/own/configmaps/c");
  await ask("good", "/_ctrlmesh/clusters/good/api/v1/namespaces/own/configmaps");
  peakBytes = Math.max(peakBytes, process.memoryUsage().rss);
  await pause(20);
}
isOver = true;
const p99 = (of: number[]) => Math.round(of.sort((a, b) => a - b)[Math.floor(of.length * 0.99)] ?? 0);
const measured = {
  peakMiB: Math.round(peakBytes / 1024 / 1024),
  goodP99Ms: p99(times.good),
  homeP99Ms: p99(times.home),
  goodCount: times.good.length,
  goodFailed,
  answers: Object.fromEntries(answers),
  message,
};
process.stdout.write(`${JSON.stringify(measured)}\n`, () => process.exit(0));
