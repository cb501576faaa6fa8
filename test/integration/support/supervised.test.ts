// The supervisor of the test fixtures' processes, and the fake Service in front of replicas.
import { connect, createServer, type Server } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { startChild } from "../../support/child-process.ts";
import { eventually } from "../../support/eventually.ts";
import { startService } from "../../support/service.ts";
import { type Supervised, supervise } from "../../support/supervised.ts";

const launch = () => startChild({ name: "sleeper", command: "sleep", args: ["600"], readyLine: false });

describe("a supervised process", () => {
  let one: Supervised;
  afterEach(() => one.stop(0));

  it("restarts after a crash and after a kill from outside, but not after kill()", async () => {
    one = await supervise({ launch, restartMs: 10 });
    const first = one.child.pid;
    await one.crash();
    await eventually(() => one.isUp && one.child.pid !== first);
    process.kill(one.child.pid, "SIGKILL");
    await eventually(() => one.isUp && one.restarts === 2);
    const before = one.child;
    await one.kill();
    expect({ isUp: one.isUp, same: one.child === before }).toEqual({ isUp: false, same: true });
    await one.start();
    expect(one.isUp).toBe(true);
  });

  it("is launched again after a failed start", async () => {
    let tries = 0;
    one = await supervise({ launch: () => (++tries === 2 ? Promise.reject(new Error("no")) : launch()), restartMs: 10 });
    await one.crash();
    await eventually(() => one.isUp);
    expect(tries).toBe(3);
  });

  it("ends during a restart, and while it is paused", async () => {
    one = await supervise({ launch, restartMs: 10 });
    const crashed = one.crash();
    await one.stop(1_000);
    await crashed;
    expect(one.isUp).toBe(false);
    await one.start();
    one.pause();
    await one.stop(1_000);
    expect(one.isUp).toBe(false);
  });

  it("stays down with restarts: false", async () => {
    one = await supervise({ launch, restarts: false });
    await one.crash();
    expect({ isUp: one.isUp, restarts: one.restarts }).toEqual({ isUp: false, restarts: 0 });
  });
});

describe("a service", () => {
  const servers: Server[] = [];
  afterEach(() => {
    for (const server of servers.splice(0)) server.close();
  });

  const replica = async (says: string) => {
    const server = createServer((socket) => void socket.on("error", () => undefined).write(says));
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const address = server.address();
    return `127.0.0.1:${typeof address === "object" ? address?.port : ""}`;
  };
  const ask = (address: string) =>
    new Promise<string>((resolve) => {
      const [host, port] = address.split(":");
      const socket = connect({ host: host ?? "", port: Number(port) });
      socket.once("data", (data) => {
        resolve(data.toString());
        socket.destroy();
      });
      socket.once("error", () => resolve("broken"));
      socket.once("close", () => resolve("broken"));
    });

  it("sends a connection to one of its backends, and breaks the connection if it has none", async () => {
    const [a, b] = [await replica("a"), await replica("b")];
    let backends = [a, b];
    const turns = [0, 0.9, 0];
    const service = await startService({ backends: () => backends, random: () => turns.shift() ?? 0 });
    expect([await ask(service.address), await ask(service.address)]).toEqual(["a", "b"]);
    backends = [b];
    expect(await ask(service.address)).toBe("b");
    backends = [];
    expect(await ask(service.address)).toBe("broken");
    await service.close();
  });
});
