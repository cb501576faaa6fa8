// A client of the forward proxy, for tests: opens a tunnel, and sends one HTTPS request through it.
import { request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import type { Socket } from "node:net";
import { connect as tlsConnect } from "node:tls";

export interface TunnelAnswer {
  /** Of the proxy, to the CONNECT. */
  readonly status: number;
  /** The proxy's header x-ctrlmesh-error. */
  readonly error: string;
  /** Of the server; "" if the tunnel has not opened. */
  readonly body: string;
}

/** @param server host:port @param ca PEM of the CA of the server's certificate */
export async function getThroughTunnel(proxyUrl: string, server: string, ca: string): Promise<TunnelAnswer> {
  const { status, error, socket } = await openTunnel(proxyUrl, server);
  try {
    return { status, error, body: status === 200 ? await getHttps(socket, server, ca) : "" };
  } finally {
    socket.destroy();
  }
}

function openTunnel(proxyUrl: string, path: string): Promise<{ status: number; error: string; socket: Socket }> {
  const { hostname, port } = new URL(proxyUrl);
  return new Promise((resolve, reject) => {
    httpRequest({ hostname, port, method: "CONNECT", path })
      .on("connect", ({ statusCode = 0, headers }, socket) =>
        resolve({ status: statusCode, error: String(headers["x-ctrlmesh-error"] ?? ""), socket }),
      )
      .on("error", reject)
      .end();
  });
}

function getHttps(socket: Socket, server: string, ca: string): Promise<string> {
  const { hostname } = new URL(`https://${server}`);
  return new Promise((resolve, reject) => {
    // An address is no server name (RFC 6066).
    const name = /^[0-9.]+$/.test(hostname) ? {} : { servername: hostname };
    httpsRequest({ host: hostname, path: "/", createConnection: () => tlsConnect({ socket, ca, host: hostname, ...name }) })
      .on("response", async (response) => resolve((await response.toArray()).join("")))
      .on("error", reject)
      .end();
  });
}
