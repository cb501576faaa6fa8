// Reads the event stream of the dashboard as its page does.
import type { Part, PartsMessage, Tick } from "../../src/cli/dashboard/model/parts.ts";

export interface DashboardStream {
  readonly parts: Map<string, Part>;
  readonly ticks: Tick[];
  /** Messages with parts so far. */
  messages: number;
  /** All that has come. */
  text: string;
  close(): void;
}

/** @param url of the page */
export async function readDashboard(url: string): Promise<DashboardStream> {
  const leaving = new AbortController();
  const reply = await fetch(`${url}events`, { signal: leaving.signal });
  const seen: DashboardStream = { parts: new Map(), ticks: [], messages: 0, text: "", close: () => leaving.abort() };
  void readBlocks(reply, seen).catch(() => {}); // it ends with the dashboard, or by close
  return seen;
}

async function readBlocks(reply: Response, seen: DashboardStream): Promise<void> {
  let rest = "";
  const decoder = new TextDecoder();
  for await (const chunk of reply.body ?? []) {
    const text = decoder.decode(chunk, { stream: true });
    seen.text += text;
    const blocks = (rest + text).split("\n\n");
    rest = blocks.pop() ?? "";
    for (const block of blocks) readBlock(block, seen);
  }
}

function readBlock(block: string, seen: DashboardStream): void {
  const [, event, data = "{}"] = /^event: (.*)\ndata: (.*)$/.exec(block) ?? [];
  if (event === "tick") seen.ticks.push(JSON.parse(data));
  if (event !== "parts") return;
  const { isWhole, set, gone }: PartsMessage = JSON.parse(data);
  seen.messages++;
  if (isWhole) seen.parts.clear();
  for (const id of gone) seen.parts.delete(id);
  for (const [id, part] of Object.entries(set)) seen.parts.set(id, part);
}
