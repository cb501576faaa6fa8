// The bounds of the listener for the operator's webhooks that tests read too.

/**
 * An API server keeps some connections, and has some hundreds of reviews at once. Every pod of the cluster
 * can connect.
 */
export const MAX_CONNECTIONS = 256;

/** For each address. An API server keeps its connections. A handshake costs a millisecond of a core. */
export const HANDSHAKES_PER_SECOND = 64;

/** After the end of a pod began, API servers and peers may still take it for ready for a moment. */
export const OPEN_MS = 3_000;
