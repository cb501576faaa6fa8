// The page's beginning. Invariant: text becomes text only; no markup is made of it (the server's policy for trusted types forbids it too).
import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { followFeed, NO_FEED } from "./feed.ts";
import { Frame } from "./frame.tsx";
import { hashOf, type Place, readPlace } from "./place.ts";

function Page() {
  const [feed, setFeed] = useState(NO_FEED);
  const [place, setPlace] = useState(() => readPlace(location.hash));
  useEffect(() => followFeed(setFeed), []);
  useEffect(() => {
    const read = () => setPlace(readPlace(location.hash));
    addEventListener("hashchange", read);
    return () => removeEventListener("hashchange", read);
  }, []);
  /** A choice within a view adds nothing to the history. */
  const choose = (changes: Partial<Place>) => {
    const next = { ...place, ...changes };
    history.replaceState(null, "", hashOf(next));
    setPlace(next);
  };
  return <Frame feed={feed} place={place} choose={choose} />;
}

const root = document.getElementById("page");
if (root !== null) render(<Page />, root);
