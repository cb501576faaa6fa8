// Chooses one of the apps.
import { useRef } from "preact/hooks";
import type { AppPart } from "../model/parts.ts";

interface Props {
  readonly apps: readonly AppPart[];
  readonly value: string;
  choose(changes: { readonly app: string }): void;
}

export function ChooseApp({ apps, value, choose }: Props) {
  const names = [...new Set(apps.map(titleOf))];
  return (
    <label>
      App{" "}
      <select value={value} onChange={({ currentTarget }) => choose({ app: currentTarget.value })}>
        {names.map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}

export function titleOf({ namespace, name }: AppPart): string {
  return `${namespace}/${name}`;
}

/** The app of the address, else one that moves, else the first. It stays the same when that move is over. */
export function useChosenApp(apps: readonly AppPart[], title: string): AppPart | undefined {
  const last = useRef("");
  const wanted = title === "" ? last.current : title;
  const app =
    apps.find((each) => titleOf(each) === wanted) ?? apps.find(({ namespaces }) => (namespaces?.moving ?? 0) > 0) ?? apps[0];
  last.current = app === undefined ? "" : titleOf(app);
  return app;
}
