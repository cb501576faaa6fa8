// Loaded into a process before its main (`node --import`): at SIGUSR2 it collects garbage and writes what the process holds to a
// file, with how late its event loop was since the last time. Needs --expose-gc and CTRLMESH_VITALS, the folder. For tests only; the product knows nothing of it. JavaScript, since
// loading what strips types would be a part of the memory that it measures.
import { renameSync, writeFileSync } from "node:fs";
import { monitorEventLoopDelay } from "node:perf_hooks";

const folder = process.env.CTRLMESH_VITALS;
const RESOLUTION_MS = 5;
const loop = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
loop.enable();
/** The histogram counts the time between two samples. @param {number} nanoseconds */
const delayMs = (nanoseconds) => Math.max(0, nanoseconds / 1e6 - RESOLUTION_MS);

process.on("SIGUSR2", () => {
  const late = { p50Ms: delayMs(loop.percentile(50)), p99Ms: delayMs(loop.percentile(99)), maxMs: delayMs(loop.max) };
  globalThis.gc?.();
  globalThis.gc?.();
  /** @type {Record<string, number>} */
  const resources = {};
  for (const kind of process.getActiveResourcesInfo()) resources[kind] = (resources[kind] ?? 0) + 1;
  const { heapUsed, heapTotal, external, arrayBuffers } = process.memoryUsage();
  const file = `${folder}/${process.pid}.json`;
  writeFileSync(`${file}.part`, JSON.stringify({ heapUsed, heapTotal, external, arrayBuffers, resources, late }));
  renameSync(`${file}.part`, file);
  loop.reset();
});
