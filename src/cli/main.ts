#!/usr/bin/env node
// The program ctrlmesh.
import { readFile } from "node:fs/promises";
import { constants } from "node:os";
import { text } from "node:stream/consumers";
import { waitingClock } from "../base/clock.ts";
import { processEnv } from "../base/env.ts";
import { connect } from "./cluster/connect.ts";
import { failure } from "./frame/command.ts";
import { EXIT } from "./frame/exit.ts";
import { screenOf } from "./frame/screen.ts";
import { run } from "./run.ts";

const interrupt = new AbortController();
let waitsForInterrupt = false;
// A signal ends the process by way of its exit handlers, which end the kubectl processes that still run.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
  process.on(signal, () => {
    const isFirst = !interrupt.signal.aborted;
    if (signal === "SIGINT" && waitsForInterrupt && isFirst) interrupt.abort();
    else process.exit(128 + constants.signals[signal]);
  });
process.stdout.on("error", ({ code: cause, message }: NodeJS.ErrnoException) => {
  // The reader has what it wanted, as with `| head`.
  if (cause === "EPIPE") process.exit(EXIT.ok);
  process.stderr.write(`ctrlmesh: writing the output: ${message}\n`);
  process.exit(EXIT.failed);
});

const ended = run(process.argv.slice(2), {
  streams: {
    out: (chunk) => process.stdout.write(chunk),
    err: (chunk) => process.stderr.write(chunk),
    screen: screenOf(process.stdout, processEnv()),
  },
  clock: waitingClock,
  interrupted() {
    waitsForInterrupt = true;
    return interrupt.signal;
  },
  connect,
  readFile: async (path) => {
    if (path === "-") return text(process.stdin);
    return readFile(path, "utf8").catch((error: unknown) => {
      const isFolder = (error as NodeJS.ErrnoException).code === "EISDIR";
      throw isFolder ? failure(`${path} is a folder: name the files in it`) : failure(`reading ${path}`, error);
    });
  },
});
void ended.then((code) => {
  // What still waits must not delay the end: only the output is waited for.
  process.stdout.write("", (error) => {
    if (error === null || error === undefined) process.exit(code);
  });
});
