// What the operator's pods need to serve webhooks: a certificate for their Service, an IP of its own for each pod, and what injection adds to a
// pod. In a cluster cert-manager, the kubelet and the injection webhook do this.
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { join } from "node:path";
import { WEBHOOK_LISTEN_ENV } from "../../src/api/injected-pod.ts";
import { createCa, issueServerCertificate } from "../../src/base/certificates.ts";
import { MeshError } from "../../src/base/errors.ts";
import { WEBHOOK_CERT_DIR_ENV, WEBHOOK_CERT_MOUNT, WEBHOOK_PORT, WEBHOOK_PORT_ENV } from "../../src/manager/injection/names.ts";
import { freePort } from "../../test/support/free-port.ts";

/** The name by which an API server calls the operator's Service. */
export const SERVICE_NAME = "foo-operator.foo-system.svc";

/** As `spec.configuration.webhook` in examples/demo/webhooks/virtualapp.yaml. */
const CERT_DIR = "/certs";
const PORT = 9443;
const LOOPBACK = "127.0.0.1";

export interface PodWebhook {
  readonly address: string;
  readonly proxyFlags: Readonly<Record<string, string>>;
  readonly operatorFlags: Readonly<Record<string, string>>;
  /** The part of a pod's spec that injection changes. */
  injected(operator: object): object;
  /** True if the operator's server accepts connections: the readiness probe of its container. */
  isServing(): Promise<boolean>;
}

export interface PodWebhooks {
  /** PEM of the CA of the operator's certificate. */
  readonly caPem: string;
  /** What the next pod needs. @throws MeshError `NO_ADDRESS` if this machine has only one loopback address */
  ofPod(): Promise<PodWebhook>;
}

/** @param dir the folder for the certificate */
export async function createPodWebhooks(dir: string): Promise<PodWebhooks> {
  const now = Date.now();
  const ca = createCa({ commonName: "foo-operator", now });
  const { certPem, keyPem } = issueServerCertificate(ca, { dnsNames: [SERVICE_NAME], now });
  const certDir = join(dir, "certs");
  mkdirSync(certDir);
  writeFileSync(join(certDir, "tls.crt"), certPem);
  writeFileSync(join(certDir, "tls.key"), keyPem, { mode: 0o600 });
  let pods = 0;
  return {
    caPem: ca.certPem,
    async ofPod() {
      pods += 1;
      const address = `127.0.2.${pods}`;
      await checkAddress(address);
      const port = await freePort();
      const listen = `${address}:${WEBHOOK_PORT}`;
      const env = { [WEBHOOK_LISTEN_ENV]: listen, [WEBHOOK_PORT_ENV]: String(PORT), [WEBHOOK_CERT_DIR_ENV]: WEBHOOK_CERT_MOUNT };
      const proxy = {
        name: "ctrlmesh-proxy",
        image: "example.invalid/ctrlmesh-proxy",
        env: Object.entries(env).map(([name, value]) => ({ name, value })),
      };
      return {
        address,
        proxyFlags: { "webhook-listen": listen, "webhook-port": String(port), "webhook-cert-dir": certDir },
        operatorFlags: { "webhook-listen": `${LOOPBACK}:${port}`, "webhook-cert-dir": certDir },
        injected: (operator) => ({
          containers: [{ ...operator, volumeMounts: [{ name: "certs", mountPath: CERT_DIR }] }, proxy],
          volumes: [{ name: "certs", emptyDir: {} }],
        }),
        isServing: () => accepts(port),
      };
    },
  };
}

async function accepts(port: number): Promise<boolean> {
  const socket = connect(port, LOOPBACK);
  try {
    await once(socket, "connect"); // rejects with an error of the socket
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

// Linux has all addresses of 127.0.0.0/8, macOS only 127.0.0.1.
async function checkAddress(address: string): Promise<void> {
  const server = createServer();
  try {
    await once(server.listen(WEBHOOK_PORT, address), "listening");
  } catch (error) {
    const hint = `This act needs port ${WEBHOOK_PORT} of the address ${address} for a pod. On macOS: sudo ifconfig lo0 alias ${address}`;
    throw new MeshError("NO_ADDRESS", hint, { cause: error });
  }
  server.close();
  await once(server, "close");
}
