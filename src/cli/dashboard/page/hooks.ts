// Small hooks of the views.
import { useEffect, useRef, useState } from "preact/hooks";

/** The same array as before while its items are the same. */
export function useSame<T>(items: readonly T[]): readonly T[] {
  const last = useRef(items);
  const isSame = last.current.length === items.length && items.every((item, at) => item === last.current[at]);
  if (!isSame) last.current = items;
  return last.current;
}

/** The width of an element in CSS pixels; 0 until it is known. */
export function useWidth<T extends Element>() {
  const ref = useRef<T>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const element = ref.current;
    if (element === null) return;
    const observer = new ResizeObserver(([entry]) => setWidth(Math.floor(entry?.contentRect.width ?? 0)));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return [ref, width] as const;
}
