// What a process gives to all of its parts.
import type { Clock, Random } from "./clock.ts";
import type { Logger } from "./log.ts";
import type { Registry } from "./metrics.ts";

export interface ProcessContext {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly registry: Registry;
}
