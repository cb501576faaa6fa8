// A full garbage collection on demand, for a program that has just dropped much memory that V8 sees no reason to look for: the bytes of
// buffers are outside of its heap. It takes some ten milliseconds for a heap of 30 MB.
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
