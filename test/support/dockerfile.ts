// Reads a Dockerfile as far as this project uses the format: shell and JSON forms, lines continued by a backslash, and ARG with a
// default before the first FROM. COPY has no wildcards and no option but --from. FROM has no option but --platform, which is ignored.

export interface Copy {
  /** The earlier stage that has the files. If absent, the files are from the source tree. */
  readonly from: string | undefined;
  readonly sources: readonly string[];
  readonly destination: string;
}

/** An instruction, in order. A COPY is parsed, others have their text. */
export interface Step {
  readonly instruction: string;
  readonly text: string;
  readonly copy?: Copy;
}

export interface Stage {
  /** With the defaults of the ARGs. */
  readonly base: string;
  readonly name: string | undefined;
  readonly steps: readonly Step[];
  readonly copies: readonly Copy[];
  /** The last instruction of each other kind, by its name. */
  readonly instructions: Readonly<Record<string, string>>;
}

export interface Dockerfile {
  readonly stages: readonly Stage[];
}

interface OpenStage extends Stage {
  readonly steps: Step[];
  readonly copies: Copy[];
  readonly instructions: Record<string, string>;
}

/** @throws Error at an instruction before the first FROM that is not an ARG with a default */
export function readDockerfile(text: string): Dockerfile {
  const stages: OpenStage[] = [];
  const defaults = new Map<string, string>();
  for (const line of logicalLines(text)) {
    const [instruction = "", ...all] = line.split(/\s+/);
    const words = instruction === "FROM" ? all.filter((word) => !word.startsWith("--platform=")) : all;
    if (instruction === "FROM") {
      const name = words[1] === "AS" ? words[2] : undefined;
      const base = (words[0] ?? "").replace(/^\$\{(\w+)}$/, (_, arg: string) => defaults.get(arg) ?? "");
      stages.push({ base, name, steps: [], copies: [], instructions: {} });
      continue;
    }
    const stage = stages.at(-1);
    const [, arg, value] = /^(\w+)=(\S+)$/.exec(words.join(" ")) ?? [];
    if (stage === undefined && instruction === "ARG" && arg !== undefined && value !== undefined) {
      defaults.set(arg, value);
      continue;
    }
    if (stage === undefined) throw new Error(`${instruction} before the first FROM`);
    const step = { instruction, text: words.join(" ") };
    if (instruction === "COPY") {
      const copy = copyOf(words);
      stage.copies.push(copy);
      stage.steps.push({ ...step, copy });
    } else {
      stage.instructions[instruction] = step.text;
      stage.steps.push(step);
    }
  }
  return { stages };
}

/** The pairs of an ENV or LABEL. Values may be in double quotes. */
export function readPairs(text: string): Readonly<Record<string, string>> {
  const pairs = [...text.matchAll(/([^\s=]+)=(?:"((?:[^"\\]|\\.)*)"|(\S*))/g)];
  return Object.fromEntries(pairs.map(([, key = "", quoted, plain = ""]) => [key, quoted?.replaceAll(/\\(.)/g, "$1") ?? plain]));
}

// Comments are removed before lines are joined, also between continued lines.
function logicalLines(text: string): string[] {
  return text
    .split("\n")
    .filter((line) => !/^\s*#/.test(line))
    .join("\n")
    .replaceAll(/\\\n\s*/g, "")
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
}

function copyOf(words: readonly string[]): Copy {
  const [first = "", ...rest] = words;
  const from = first.startsWith("--from=") ? first.slice("--from=".length) : undefined;
  const paths = from === undefined ? words : rest;
  return { from, sources: paths.slice(0, -1), destination: paths.at(-1) ?? "" };
}
