// Reads a Dockerfile as far as ours go: one instruction a line, no continuation lines, COPY without wildcards.

export interface Copy {
  /** The earlier stage it comes from; absent: the tree. */
  readonly from: string | undefined;
  readonly sources: readonly string[];
  readonly destination: string;
}

export interface Stage {
  readonly base: string;
  readonly name: string | undefined;
  readonly copies: readonly Copy[];
  /** The last of each other instruction, by its name. */
  readonly instructions: Readonly<Record<string, string>>;
}

export interface Dockerfile {
  readonly stages: readonly Stage[];
}

interface OpenStage extends Stage {
  readonly copies: Copy[];
  readonly instructions: Record<string, string>;
}

/** @throws Error at an instruction before the first FROM */
export function readDockerfile(text: string): Dockerfile {
  const stages: OpenStage[] = [];
  for (const line of text.split("\n")) {
    if (line.trim() === "" || line.startsWith("#")) continue;
    const [instruction = "", ...words] = line.split(/\s+/);
    if (instruction === "FROM") {
      stages.push({ base: words[0] ?? "", name: words[1] === "AS" ? words[2] : undefined, copies: [], instructions: {} });
      continue;
    }
    const stage = stages.at(-1);
    if (stage === undefined) throw new Error(`${instruction} before the first FROM`);
    if (instruction === "COPY") stage.copies.push(copyOf(words));
    else stage.instructions[instruction] = words.join(" ");
  }
  return { stages };
}

function copyOf(words: readonly string[]): Copy {
  const [first = "", ...rest] = words;
  const from = first.startsWith("--from=") ? first.slice("--from=".length) : undefined;
  const paths = from === undefined ? words : rest;
  return { from, sources: paths.slice(0, -1), destination: paths.at(-1) ?? "" };
}
