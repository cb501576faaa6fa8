// What the program sends: parts, and a tick each second. The browser connects again by itself, and then gets everything anew.
import type { About, Part, PartsMessage, Tick } from "../model/parts.ts";

export interface Feed {
  readonly parts: ReadonlyMap<string, Part>;
  readonly about: About | undefined;
  readonly tick: Tick | undefined;
  /** False while the program itself does not answer. */
  readonly isLive: boolean;
}

export const NO_FEED: Feed = { parts: new Map(), about: undefined, tick: undefined, isLive: true };

/** Calls `show` with each new state. */
export function followFeed(show: (feed: Feed) => void): void {
  let feed = NO_FEED;
  const set = (changes: Partial<Feed>) => {
    feed = { ...feed, ...changes };
    show(feed);
  };
  const source = new EventSource("events");
  source.addEventListener("parts", ({ data }: MessageEvent<string>) => {
    const { isWhole, set: parts, gone, about = feed.about }: PartsMessage = JSON.parse(data);
    const next = new Map(isWhole ? [] : feed.parts);
    for (const id of gone) next.delete(id);
    for (const [id, part] of Object.entries(parts)) next.set(id, part);
    set({ parts: next, about, isLive: true });
  });
  source.addEventListener("tick", ({ data }: MessageEvent<string>) => set({ tick: JSON.parse(data) as Tick, isLive: true }));
  source.addEventListener("error", () => set({ isLive: false }));
}
