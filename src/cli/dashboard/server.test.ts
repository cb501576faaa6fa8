import { request } from "node:http";
import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../../../test/support/eventually.ts";
import { type PageServer, servePage } from "./server.ts";

let server: PageServer;
beforeAll(async () => {
  server = await servePage(0, {
    "": { type: "text/html; charset=utf-8", body: "page" },
    data: (query, response) => void response.end(query.get("app")),
  });
});
afterAll(() => server.close());

interface Options {
  readonly method?: string;
  readonly host?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

function ask(path: string, { method = "GET", host, headers = {} }: Options = {}) {
  const { port } = new URL(server.url);
  return new Promise<{ code: number; headers: Readonly<Record<string, unknown>>; body: string }>((resolve, reject) => {
    const sent = request(
      { host: "127.0.0.1", port, path, method, headers: { host: host ?? `127.0.0.1:${port}`, ...headers } },
      (reply) => {
        let body = "";
        reply.setEncoding("utf8").on("data", (text: string) => (body += text));
        reply.on("end", () => resolve({ code: reply.statusCode ?? 0, headers: reply.headers, body }));
      },
    );
    sent.on("error", reject).end();
  });
}

const root = () => new URL(server.url).pathname;

describe("the dashboard's server", () => {
  it("gives the page to who has the address, with headers that forbid scripts from elsewhere, frames and copies", async () => {
    const { code, headers, body } = await ask(root());
    expect([code, body]).toEqual([200, "page"]);
    expect(headers["content-security-policy"]).toMatch(
      /^default-src 'none'; script-src 'self';.*frame-ancestors 'none'.*require-trusted-types-for 'script'/,
    );
    expect(String(headers["content-security-policy"])).not.toContain("unsafe");
    expect(headers).toMatchObject({
      "cache-control": "no-store",
      "referrer-policy": "no-referrer",
      "x-content-type-options": "nosniff",
      "x-frame-options": "DENY",
    });
    expect(headers).not.toHaveProperty("access-control-allow-origin");
    expect((await ask(`${root()}data?app=ops%2Fshop`)).body).toBe("ops/shop");
    expect(await ask(root(), { method: "HEAD" })).toMatchObject({ code: 200, body: "" });
  });

  it("has a path of 128 random bits, new at each start", async () => {
    const other = await servePage(0, {});
    expect(root()).toMatch(/^\/[0-9a-f]{32}\/$/);
    expect(new URL(other.url).pathname).not.toBe(root());
    await other.close();
  });

  it.each(["/", "/page.js", `/${"0".repeat(32)}/`, `/${"0".repeat(31)}/`, "//", "/..%2f", "/constructor/", "*"])(
    "gives nothing at %s",
    async (path) => {
      expect((await ask(path)).code).toBe(404);
    },
  );

  it.each(["constructor", "__proto__", "../", "%00"])("gives nothing for the file %s", async (file) => {
    expect((await ask(root() + file)).code).toBe(404);
  });

  it("refuses a name that another site has pointed here (DNS rebinding), also with the right path", async () => {
    const { port } = new URL(server.url);
    for (const host of [`evil.example:${port}`, "127.0.0.1", `127.0.0.1.evil.example:${port}`, `[::1]:${port}`]) {
      const { code, body } = await ask(root(), { host });
      expect([host, code]).toEqual([host, 403]);
      expect(body).not.toBe("page");
    }
    expect((await ask(root(), { host: `localhost:${port}` })).code).toBe(200);
  });

  it.each(["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])("refuses %s", async (method) => {
    expect(await ask(root(), { method })).toMatchObject({ code: 405, headers: { allow: "GET, HEAD" } });
  });

  it("refuses headers of more than 8 KB", async () => {
    expect((await ask(root(), { headers: { "x-long": "x".repeat(9_000) } })).code).toBe(431);
  });

  it("gives the page soon, although another user has taken all connections and asks for nothing", {
    timeout: 20_000,
  }, async () => {
    const { port } = new URL(server.url);
    const idle = Array.from({ length: 200 }, () => connect(Number(port), "127.0.0.1").on("error", () => {}));
    await eventually(
      () =>
        ask(root()).then(
          () => false,
          () => true,
        ),
      5_000,
    );
    await eventually(
      () =>
        ask(root()).then(
          ({ code }) => code === 200,
          () => false,
        ),
      10_000,
    );
    for (const socket of idle) socket.destroy();
  });

  it("listens on the loopback only", async () => {
    const { port, hostname } = new URL(server.url);
    expect(hostname).toBe("127.0.0.1");
    const other = connect({ host: "127.0.0.2", port: Number(port) });
    const error = await new Promise<NodeJS.ErrnoException | undefined>((resolve) => {
      other.on("error", resolve).on("connect", () => resolve(undefined));
    });
    other.destroy();
    expect(error?.code).toBe("ECONNREFUSED");
  });

  it("says which port is in use", async () => {
    await expect(servePage(Number(new URL(server.url).port), {})).rejects.toThrow(/is in use: choose another one with --port/);
  });
});
