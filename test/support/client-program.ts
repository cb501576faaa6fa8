// Runs a client program of test/operators. From its stdout (JSON lines, see test/operators/README.md) it derives the
// objects that the program sees, its events, and whether it leads.
import { startChild } from "./child-process.ts";

export interface ClientProgramOptions {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly verbose?: boolean;
}

/** One event, as the program saw it. */
export interface Sighting {
  readonly resource: string;
  readonly type: string;
  /** namespace/name */
  readonly key: string;
  /** The object's, if the program says it. */
  readonly version?: string | undefined;
}

export interface ClientProgram {
  readonly name: string;
  readonly exited: boolean;
  readonly leading: boolean;
  /** The keys that the program believes to exist, sorted. */
  view(resource: string): string[];
  /** All events since the start. */
  readonly sightings: readonly Sighting[];
  /** The answers to its writes into a namespace that the test has named. */
  readonly answers: readonly WriteAnswer[];
  /** The newest lines of its output, for failure messages. */
  output(): string;
  stop(): Promise<void>;
}

/** The answer to a write, as the library shows it to the program. */
export interface WriteAnswer {
  /** The namespace. */
  readonly wroteTo: string;
  readonly code: number;
  readonly message?: string;
}

interface Line extends Partial<WriteAnswer> {
  readonly resource?: string;
  readonly type?: string;
  readonly key?: string;
  readonly version?: string;
  readonly listed?: readonly string[];
  readonly leading?: boolean;
}

export async function startClientProgram(options: ClientProgramOptions): Promise<ClientProgram> {
  const views = new Map<string, Set<string>>();
  const sightings: Sighting[] = [];
  const answers: WriteAnswer[] = [];
  let leading = false;
  const viewOf = (resource: string) => {
    const view = views.get(resource) ?? new Set();
    views.set(resource, view);
    return view;
  };
  const hear = ({ resource, type, key, version, listed, leading: leads, wroteTo, code = 0, message = "" }: Line) => {
    if (leads !== undefined) leading = leads;
    if (wroteTo !== undefined) answers.push({ wroteTo, code, message });
    if (resource === undefined) return;
    if (listed !== undefined) {
      views.set(resource, new Set(listed));
      sightings.push(...listed.map((each) => ({ resource, type: "LISTED", key: each })));
    }
    if (type === undefined || key === undefined) return;
    sightings.push({ resource, type, key, version });
    if (type === "DELETED") viewOf(resource).delete(key);
    else viewOf(resource).add(key);
  };
  const child = await startChild({
    ...options,
    readyLine: false,
    onLine: (line) => {
      if (line.startsWith("{")) hear(JSON.parse(line) as Line);
    },
  });
  return {
    name: options.name,
    get exited() {
      return child.exited;
    },
    get leading() {
      return leading;
    },
    view: (resource) => [...viewOf(resource)].sort(),
    sightings,
    answers,
    output: child.output,
    stop: async () => void (await child.stop(5_000)),
  };
}
