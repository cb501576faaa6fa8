// A full garbage collection on demand, for a program that has just dropped many buffers. Their bytes are outside of V8's heap, so V8 would
// collect them much later. A collection takes some ten milliseconds for a heap of 30 MB.
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { once } from "./remember.ts";

const collector = once(() => {
  setFlagsFromString("--expose-gc");
  return runInNewContext("gc") as () => void;
});

export function collectGarbage(): void {
  collector()();
}
