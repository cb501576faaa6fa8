// A file that another program replaces, such as a CA bundle, read before each use. Invariant: while the file
// cannot be read or parsed, its last good content is used.
import { readFile } from "node:fs/promises";
import { errorMessage, MeshError } from "./errors.ts";
import type { Logger } from "./log.ts";

export type LastGoodFile<T> = ReturnType<typeof createLastGoodFile<T>>;

interface LastGoodFileOptions<T> {
  readonly file: string;
  /** What the file contains, for messages. */
  readonly name: string;
  readonly code: string;
  /** Throws if the text is invalid. */
  readonly parse: (text: string) => T;
  readonly log: Logger;
}

export function createLastGoodFile<T>({ file, name, code, parse, log }: LastGoodFileOptions<T>) {
  let good: { readonly text: string; readonly value: T } | undefined;
  let isWarned = false;
  return {
    /**
     * The same value for as long as the text is the same.
     * @throws MeshError with `code` if there has never been a good text
     */
    async current(): Promise<T> {
      try {
        const text = await readFile(file, "utf8");
        if (text !== good?.text) good = { text, value: parse(text) };
        isWarned = false;
      } catch (cause) {
        const reason = errorMessage(cause);
        if (good === undefined) throw new MeshError(code, `reading ${name} from ${file}: ${reason}`, { cause });
        if (!isWarned) log.warn({ reason, file }, `${name} is not readable; keeping the last good one`);
        isWarned = true;
      }
      return good.value;
    },
  };
}
