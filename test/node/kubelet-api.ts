// The part of the kubelet's API that serves logs, for `kubectl logs`. The API server calls it at the node's address. As with a
// new kubelet, neither side checks certificates.
import { createReadStream, statSync, unwatchFile, watchFile } from "node:fs";
import type { ServerResponse } from "node:http";
import { createServer, type Server } from "node:https";
import { buffer } from "node:stream/consumers";
import { createCa, issueServerCertificate } from "../../src/base/certificates.ts";
import { NODE_ADDRESS } from "./network.ts";

export const KUBELET_PORT = 10250;

/** Path of a container's log; undefined if there is no such container. */
export type LogFileOf = (namespace: string, pod: string, container: string) => string | undefined;

const FOLLOW_MS = 100;

export async function startKubeletApi(logFileOf: LogFileOf): Promise<Server> {
  const now = Date.now();
  const { certPem, keyPem } = issueServerCertificate(createCa({ commonName: "test-node", now }), {
    ipAddresses: [NODE_ADDRESS],
    now,
  });
  const server = createServer({ cert: certPem, key: keyPem }, (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? "/", "https://node");
    const [kind, namespace = "", pod = "", container = ""] = pathname.split("/").slice(1).map(decodeURIComponent);
    const file = kind === "containerLogs" ? logFileOf(namespace, pod, container) : undefined;
    if (file === undefined) response.writeHead(404).end("the test node has only the logs of its containers\n");
    else void sendLog(file, searchParams, response);
  });
  await new Promise<void>((resolve, reject) => server.once("error", reject).listen(KUBELET_PORT, NODE_ADDRESS, () => resolve()));
  return server;
}

async function sendLog(file: string, query: URLSearchParams, response: ServerResponse): Promise<void> {
  const { size } = statSync(file, { throwIfNoEntry: false }) ?? { size: 0 };
  const tail = query.get("tailLines");
  response.writeHead(200, { "content-type": "text/plain" });
  let at = tail === null ? 0 : await startOfTail(file, size, Number(tail));
  at = await sendPart(file, at, size, response);
  if (query.get("follow") !== "true") return void response.end();
  const poll = (): void => {
    const from = at;
    at = statSync(file).size;
    if (at > from) void sendPart(file, from, at, response);
  };
  watchFile(file, { interval: FOLLOW_MS }, poll);
  response.once("close", () => unwatchFile(file, poll));
}

async function sendPart(file: string, from: number, to: number, response: ServerResponse): Promise<number> {
  if (to > from) for await (const chunk of createReadStream(file, { start: from, end: to - 1 })) response.write(chunk);
  return to;
}

async function startOfTail(file: string, size: number, lines: number): Promise<number> {
  if (size === 0) return 0;
  const all = await buffer(createReadStream(file, { end: size - 1 }));
  let at = all.at(-1) === 10 ? size - 1 : size;
  for (let left = lines; left > 0 && at > 0; left--) at = all.lastIndexOf(10, at - 1);
  return lines === 0 ? size : at + 1;
}
