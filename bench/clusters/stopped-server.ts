// A server that never takes a connection, as one that is stopped: the kernel takes them for it until its queue is full. Run by clusters-world.ts.
import { type AddressInfo, createServer } from "node:net";

const parent = process.ppid;
const server = createServer();
server.listen({ port: 0, host: "127.0.0.1", backlog: 8 }, () => {
  const { port } = server.address() as AddressInfo;
  process.stdout.write(`${JSON.stringify({ port })}\n`, () => {
    const sleeper = new Int32Array(new SharedArrayBuffer(4));
    while (process.ppid === parent) Atomics.wait(sleeper, 0, 0, 1_000);
    process.exit();
  });
});
