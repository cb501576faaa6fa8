// Reads a list through a probe, with every byte of its elements. Used by the e2e files that compare a subset's lists with the direct ones.
import { expect } from "vitest";
import type { Probe } from "./probe.ts";
import { type List, readList } from "./slices.ts";

/** The list; the answer must be a 200. */
export async function listOf(probe: Probe, path: string, accept: string): Promise<List> {
  const { status, headers, body } = await probe.get(path, { accept });
  expect(status, `${path} ${accept}`).toBe(200);
  return readList(String(headers["content-type"]), body);
}
