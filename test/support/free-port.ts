// Free loopback ports for programs that need their port before they start. The kernel gives the ports of this range to no listener
// and no connection by itself, so a port stays free until the program binds it.
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:net";

/** Below the ports that Linux (from 32768) and macOS (from 49152) hand out, and below Kubernetes' node ports (from 30000). */
const RANGE = [10_000, 30_000] as const;

export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(...RANGE);
    if (await isFree(port)) return port;
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  try {
    await once(server.listen(port, "127.0.0.1"), "listening");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EADDRINUSE") return false;
    throw error;
  }
  server.close();
  await once(server, "close");
  return true;
}
