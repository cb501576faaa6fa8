// What the program sends: parts, and a tick each second. The browser connects again by itself, and then gets everything anew.
import type { About, Part, PartsMessage, Tick } from "../model/parts.ts";

export interface Feed {
  readonly parts: ReadonlyMap<string, Part>;
  readonly about: About | undefined;
  readonly tick: Tick | undefined;
  /** False while the program itself does not answer. Another one that has taken its port later does not count. */
  readonly isLive: boolean;
}

export const NO_FEED: Feed = { parts: new Map(), about: undefined, tick: undefined, isLive: true };

const proof = document.querySelector<HTMLMetaElement>("meta[name=proof]")?.content;

/** Calls `show` with each new state. */
export function followFeed(show: (feed: Feed) => void): void {
  let feed = NO_FEED;
  const set = (changes: Partial<Feed>) => {
    feed = { ...feed, ...changes };
    show(feed);
  };
  // A browser opens six connections to one address, so a page that nobody looks at leaves its own to others.
  let source = document.hidden ? undefined : connect();
  document.addEventListener("visibilitychange", () => {
    source?.close();
    source = document.hidden ? undefined : connect();
  });

  function connect(): EventSource {
    const opened = new EventSource("events");
    let isProven = false;
    // Also when the browser connects again.
    opened.addEventListener("open", () => {
      isProven = false;
    });
    opened.addEventListener("parts", ({ data }: MessageEvent<string>) => {
      const { isWhole, set: parts, gone, about = feed.about }: PartsMessage = JSON.parse(data);
      isProven ||= isWhole && about?.proof === proof;
      if (!isProven) {
        opened.close();
        return set({ isLive: false });
      }
      const next = new Map(isWhole ? [] : feed.parts);
      for (const id of gone) next.delete(id);
      for (const [id, part] of Object.entries(parts)) next.set(id, part);
      set({ parts: next, about, isLive: true });
    });
    opened.addEventListener("tick", ({ data }: MessageEvent<string>) => {
      if (isProven) set({ tick: JSON.parse(data) as Tick, isLive: true });
    });
    opened.addEventListener("error", () => set({ isLive: false }));
    return opened;
  }
}
