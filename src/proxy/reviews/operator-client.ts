// The way to the operator's webhook server, on the loopback of the pod. Invariant: only the server with the
// certificate of `certDir` counts as the operator, since any container of the pod can listen on a free port.
import type { Clock } from "../../base/clock.ts";
import { errorMessage, MeshError } from "../../base/errors.ts";
import type { Reply } from "../http/handler.ts";
import type { OperatorCertificate } from "./operator-certificate.ts";
import { type ReviewLayer, unavailable } from "./review-call.ts";
import { createServerPool, type Sent } from "./server-pool.ts";

/** @throws ReviewError without an answer; MeshError `ABORTED`, `BAD_REQUEST`, `REQUEST_BODY_BROKEN` */
export type SendToOperator = (sent: Sent) => Promise<Reply>;

/** For the connection, and then for the handshake. An operator that has just started may be busy. */
const CONNECT_MS = 5_000;
/** Node's servers close idle connections after 5 s, Go's later. */
const IDLE_MS = 4_000;

/** @param port the operator's own, on 127.0.0.1 */
export function createOperatorClient(
  port: number,
  certificate: Pick<OperatorCertificate, "isOperators" | "serverName">,
  clock: Clock,
): SendToOperator {
  const pool = createServerPool({
    address: `127.0.0.1:${port}`,
    // The chain does not matter, since the certificate itself is compared.
    options: async () => ({
      host: "127.0.0.1",
      port,
      rejectUnauthorized: false,
      minVersion: "TLSv1.2",
      servername: certificate.serverName,
    }),
    async check(socket) {
      const leaf = socket.getPeerX509Certificate()?.raw;
      if (leaf !== undefined && (await certificate.isOperators(leaf))) return;
      throw new Error("its certificate is not the one in certDir");
    },
    connectMs: CONNECT_MS,
    handshakeMs: CONNECT_MS,
    idleMs: IDLE_MS,
    clock,
  });
  return async (sent) => {
    try {
      return await pool.send(sent);
    } catch (error) {
      throw error instanceof MeshError ? failureOf(error, port) : error;
    }
  };
}

/** The last layer, for everything but reviews (conversions, GETs, unknown versions): the operator answers. */
export function operator(send: SendToOperator): ReviewLayer {
  return () => (call) => {
    call.record.result = "passed";
    return send(call);
  };
}

function failureOf(error: MeshError, port: number): Error {
  const server = `the operator's webhook server at port ${port}`;
  if (error.code === "UPSTREAM_UNREACHABLE")
    return unavailable("OPERATOR_UNREACHABLE", `ctrlmesh: ${server} cannot be reached: ${errorMessage(error.cause)}`);
  if (error.code === "UPSTREAM_BROKEN" || error.code === "UPSTREAM_TIMEOUT")
    return unavailable("OPERATOR_BROKEN", `ctrlmesh: ${server} broke off without an answer`);
  return error;
}
