#!/usr/bin/env node
// The program ctrlmesh.
import { readFile } from "node:fs/promises";
import { text } from "node:stream/consumers";
import { waitingClock } from "../base/clock.ts";
import { connect } from "./cluster/connect.ts";
import { failure } from "./frame/command.ts";
import { run } from "./run.ts";

process.exitCode = await run(process.argv.slice(2), {
  streams: {
    out: (chunk) => process.stdout.write(chunk),
    err: (chunk) => process.stderr.write(chunk),
  },
  clock: waitingClock,
  connect,
  readFile: async (path) => {
    if (path === "-") return text(process.stdin);
    return readFile(path, "utf8").catch((error: unknown) => {
      throw failure(`reading ${path}`, error);
    });
  },
});
