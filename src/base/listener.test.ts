import { createServer } from "node:net";
import { expect, test } from "vitest";
import { createListener, listenOptions } from "./listener.ts";

test("all addresses are left to Node, which takes 0.0.0.0 on a kernel without IPv6; any other host is kept", () => {
  expect(listenOptions({ host: "::", port: 1 })).toEqual({ port: 1, backlog: 4_096 });
  expect(listenOptions({ host: "::1", port: 1 })).toEqual({ host: "::1", port: 1, backlog: 4_096 });
  expect(listenOptions({ host: "0.0.0.0", port: 1 })).toEqual({ host: "0.0.0.0", port: 1, backlog: 4_096 });
});

test("a port that is in use is an error that names the address", async () => {
  const first = createListener(createServer(), "connection");
  const { port } = await first.listen({ host: "127.0.0.1", port: 0 });
  const second = createListener(createServer(), "connection");
  await expect(second.listen({ host: "127.0.0.1", port })).rejects.toMatchObject({
    code: "LISTEN_FAILED",
    message: `listening on 127.0.0.1:${port}`,
  });
  await first.close();
});
