// The begin of a tunnel's TLS.

/** A ClientHello without a name, as short as it can be. */
export const HELLO = Buffer.from([22, 3, 1, 0, 44, 1, 0, 0, 40, 3, 3, ...Array(32).fill(0), 0, 0, 2, 0, 0, 0]);
