// A gateway before API servers, for tests: it serves each under a path of its own, with one certificate of its own.
import { createServer, request } from "node:https";
import type { AddressInfo } from "node:net";
import { issueServerCertificate } from "../../src/base/certificates.ts";
import type { Kube } from "./kube.ts";
import { newMeshCa } from "./mesh-identity.ts";

export type Gateway = Awaited<ReturnType<typeof startGateway>>;

/** @param kubes by path, such as "/k8s/clusters/c-1" */
export async function startGateway(kubes: Readonly<Record<string, Kube>>) {
  const ca = newMeshCa();
  const { certPem: cert, keyPem: key } = issueServerCertificate(ca, { ipAddresses: ["127.0.0.1"], now: Date.now() });
  const server = createServer({ cert, key }, (req, res) => {
    const path = req.url ?? "";
    const prefix = Object.keys(kubes).find((each) => path.startsWith(`${each}/`)) ?? "";
    const kube = kubes[prefix];
    if (kube === undefined) return void res.writeHead(404).end();
    const sent = request(
      `${kube.server}${path.slice(prefix.length)}`,
      { method: req.method, headers: req.headers, ca: kube.caPem },
      (answer) => {
        res.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(res);
      },
    );
    sent.on("error", () => res.destroy());
    req.pipe(sent);
    res.on("close", () => sent.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    caPem: ca.certPem,
    urlOf: (path: string) => `${url}${path}`,
    close(): void {
      server.close();
      server.closeAllConnections();
    },
  };
}
