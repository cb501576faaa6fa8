// The lifecycle hooks of a proxy that runs as a plain container. Each hook is a process, as the kubelet starts it.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { afterEach, expect, it } from "vitest";
import { eventually } from "../../support/eventually.ts";
import { programMain } from "../../support/programs.ts";

const MAIN = programMain("proxy", "hooks/main");
const servers: Server[] = [];

afterEach(() => {
  for (const server of servers.splice(0)) server.close().closeAllConnections();
});

async function serve(answer: () => { readonly status: number; readonly text: string }): Promise<number> {
  const server = createServer((_, response) => response.writeHead(answer().status).end(answer().text));
  servers.push(server);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

function run(...args: readonly string[]) {
  const child = spawn(process.execPath, [MAIN, ...args], { env: {} });
  const state = { stderr: "", code: undefined as number | null | undefined, exit: once(child, "close") };
  child.stderr.on("data", (text) => {
    state.stderr += text;
  });
  child.once("close", (code) => {
    state.code = code;
  });
  return state;
}

it("wait-ready holds the operator back until the proxy is ready, and says why", async () => {
  let answer = { status: 500, text: "no snapshot from the manager yet" };
  const port = await serve(() => answer);
  const hook = run("wait-ready", `--port=${port}`);
  await eventually(() => expect(hook.stderr).toContain("ctrlmesh-proxy: waiting: no snapshot from the manager yet"));
  expect(hook.code).toBeUndefined();
  answer = { status: 200, text: "ok" };
  expect(await hook.exit).toEqual([0, null]);
});

it("wait-idle holds the proxy's end back while the operator is connected", async () => {
  const port = await serve(() => ({ status: 200, text: "" }));
  const operator = connect(port, "127.0.0.1");
  await once(operator, "connect");
  const hook = run("wait-idle", `--ports=${port}`, "--at-most=60");
  const otherPort = run("wait-idle", "--ports=1", "--at-most=60");
  expect(await otherPort.exit).toEqual([0, null]); // by now the first hook has also read the connection table at least once
  expect(hook.code).toBeUndefined();
  operator.destroy();
  expect(await hook.exit).toEqual([0, null]);
  expect(hook.stderr).toBe("");
});

it("a hook with wrong arguments exits with 64", async () => {
  expect(await run("wait").exit).toEqual([64, null]);
});
