// Puts the listener for the operator's webhooks together, in its thread. Invariant: it asks the main thread
// for nothing but decisions and the mesh's certificate.

import type { Socket } from "node:net";
import { createClientPace } from "../../base/client-pace.ts";
import { clientAddress } from "../../base/connection-places.ts";
import { errorMessage } from "../../base/errors.ts";
import { createListeners } from "../../base/listeners.ts";
import type { ProcessContext } from "../../base/process-context.ts";
import type { PodPeer } from "../../mesh/contract/peer-type.ts";
import { composeStack } from "../http/compose-stack.ts";
import { createAccessLog } from "../observe/access-log.ts";
import { createTrafficServer } from "../server/traffic-server.ts";
import { createQuestions } from "./ask-main.ts";
import { peerNamesOf } from "./know-peer.ts";
import { createObservations } from "./observe.ts";
import { createOperatorCertificate } from "./operator-certificate.ts";
import { createOperatorClient } from "./operator-client.ts";
import { createPeerClients } from "./peer-clients.ts";
import { createAskedIdentity, reviewsTls } from "./reviews-tls.ts";
import { reviewLayers } from "./stack.ts";
import type { FromThread, ThreadSettings, ToThread } from "./thread-messages.ts";

/** Every pod of the cluster can connect. An API server has some hundreds of reviews at a time. */
export const MAX_CONNECTIONS = 256;

/** The limit of one address. An API server keeps its connections. A handshake takes 1 ms of a core. */
const HANDSHAKES_PER_SECOND = 64;

/** API servers and peers may take a pod for ready for a moment after its end has begun. */
const OPEN_MS = 3_000;

export interface ListenerDeps extends Pick<ProcessContext, "clock" | "random" | "log"> {
  readonly post: (message: FromThread) => void;
}

export function createListener(settings: ThreadSettings, { post, clock, random, log }: ListenerDeps) {
  const { listen, port: operatorPort, certDir, drainMs, requestMs } = settings;
  const peers = { current: [] as readonly PodPeer[] };
  const changes = createListeners<void>();
  const questions = createQuestions((asked) => post({ kind: "decide", questions: asked }));
  const identity = createAskedIdentity(() => post({ kind: "credentials" }), clock);
  const metrics = createObservations((observations) => post({ kind: "observed", observations }), clock);
  const accessLog = createAccessLog({ share: settings.accessLogShare, random, log });
  let untap: (() => void) | undefined;

  const certificate = createOperatorCertificate({
    certDir,
    report(text) {
      const { pair, problem } = certificate;
      post({ kind: "certificate", isThere: pair !== undefined, problem, report: text });
    },
    clock,
    log,
  });
  const layers = reviewLayers({
    decide: questions.decide,
    onRoutesChange: changes.add,
    sendToOperator: createOperatorClient(operatorPort, certificate, clock),
    clients: createPeerClients(identity, listen.port, clock),
    peers,
    metrics,
    accessLog,
    clock,
    random,
    log,
  });
  const handshakes = createClientPace({ perSecond: HANDSHAKES_PER_SECOND, burst: MAX_CONNECTIONS, clock });
  const server = createTrafficServer({
    listen,
    tls: reviewsTls(certificate, identity),
    stack: composeStack(layers, clock),
    createRecord: (client) => ({ peerNames: peerNamesOf(client), address: clientAddress(client as Socket) ?? "" }),
    clock,
    log,
    drainMs,
    openMs: OPEN_MS,
    requestMs,
    strangers: { maxConnections: MAX_CONNECTIONS, mayConnect: (address) => handshakes.allow(address, 1) },
  });
  return {
    /** Looks for the operator's certificate, then listens. @throws MeshError `LISTEN_FAILED` */
    async start(): Promise<void> {
      await certificate.start(); // first, since the thread that replaces another one has clients immediately
      try {
        await server.start(new AbortController().signal); // the end of the thread ends a start
        post({ kind: "listening", port: server.port });
      } catch (error) {
        post({ kind: "not-listening", reason: errorMessage(error) });
        throw error; // ends this thread
      }
    },
    take(message: ToThread) {
      switch (message.kind) {
        case "peers":
          peers.current = message.peers;
          return;
        case "routes-changed":
          changes.tell();
          return;
        case "tapped":
          untap?.();
          untap = message.isTapped ? accessLog.tap((fields) => post({ kind: "request", fields })) : undefined;
          return;
        case "decided":
          return questions.answered(message.decisions);
        case "credentials":
          return identity.answered(message.credentials);
        case "drain":
          void server.stop().then(() => {
            metrics.flush();
            post({ kind: "drained" });
          });
          return;
        default:
          return message satisfies never;
      }
    },
  };
}
