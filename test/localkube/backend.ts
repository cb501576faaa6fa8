// The shared parts that every operation on objects needs: the store, the table of kinds, the clock and the random source. Made by
// localkube.ts.
import { randomUUID } from "node:crypto";
import { type Clock, type Random, systemClock, systemRandom } from "../../src/base/clock.ts";
import { Registry } from "./model/registry.ts";
import { Store } from "./store.ts";

export interface Backend {
  readonly store: Store;
  readonly registry: Registry;
  readonly clock: Clock;
  readonly random: Random;
  newUid(): string;
  allocateAddress(): string;
}

export interface BackendOptions {
  readonly clock?: Clock;
  readonly random?: Random;
  /** How many events are kept for each resource; the default is 5000. */
  readonly historySize?: number;
}

export function createBackend(options: BackendOptions = {}): Backend {
  let addresses = 1; // 10.96.0.1 is the service of the API server itself
  return {
    store: new Store(options),
    registry: new Registry(),
    clock: options.clock ?? systemClock,
    random: options.random ?? systemRandom,
    newUid: randomUUID,
    allocateAddress: () => {
      addresses++;
      return `10.96.${Math.floor(addresses / 256)}.${addresses % 256}`;
    },
  };
}
