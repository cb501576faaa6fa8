// ctrlmesh with sidecars that answer anything. Whoever may start a pod of an app chooses what answers.
import { createServer, type RequestListener } from "node:http";
import { afterEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { askSidecar } from "./apps/ask-sidecar.ts";
import { readHeld } from "./apps/held-places.ts";
import type { Cluster } from "./frame/cluster.ts";

const closers: (() => void)[] = [];
afterEach(() => {
  for (const close of closers.splice(0)) close();
});

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  closers.push(() => {
    server.closeAllConnections();
    server.close();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  return `http://127.0.0.1:${port}`;
}

const ask = async (listener: RequestListener) => {
  const url = await serve(listener);
  const cluster = { forward: async () => ({ url, close: () => {} }) } as unknown as Cluster;
  return askSidecar(cluster, { namespace: "ops", name: "shop-0" }, { path: "/debug/plans", schema: z.looseObject({}) });
};

describe("a sidecar", () => {
  it("that redirects does not have this machine ask another server", async () => {
    let asked = 0;
    const other = await serve((_req, res) => {
      asked++;
      res.end('{"secret":"of the machine"}');
    });
    await expect(ask((_req, res) => void res.writeHead(302, { location: `${other}/secret` }).end())).rejects.toThrow(
      "the sidecar of pod shop-0 answers 302",
    );
    expect(asked).toBe(0);
  });

  it("that sends without end is not read to its end", async () => {
    let sent = 0;
    const chunk = Buffer.alloc(1024 * 1024, "x");
    const answer = ask((_req, res) => {
      const more = () => {
        if (res.destroyed) return;
        sent += chunk.length;
        if (res.write(chunk)) setImmediate(more);
        else res.once("drain", more);
      };
      more();
    });
    await expect(answer).rejects.toThrow("the answer of the sidecar of pod shop-0 is longer than 32 MB");
    expect(sent).toBeLessThan(64 * chunk.length);
  });

  it.each([
    ["small", "", "gives a list of places that does not end"],
    ["large", "x".repeat(1024 * 1024), "are longer than 32 MB together"],
  ])("that gives %s pages without end is not read to their end", async (_, filler, message) => {
    let pages = 0;
    const url = await serve((_req, res) => void res.end(JSON.stringify({ version: 1, filler, next: `ns-${pages++}` })));
    const cluster = { forward: async () => ({ url, close: () => {} }) } as unknown as Cluster;
    await expect(readHeld(cluster, { namespace: "ops", name: "shop-0" })).rejects.toThrow(message);
    expect(pages).toBeLessThanOrEqual(1_000);
  });

  it("that breaks its answer off is named", async () => {
    await expect(
      ask((_req, res) => {
        res.writeHead(200, { "content-length": 100 });
        res.write("{", () => res.destroy());
      }),
    ).rejects.toThrow("the sidecar of pod shop-0 does not answer");
  });
});
