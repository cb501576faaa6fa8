// Look-ups of names for the forward proxy. The system's resolver is asked, as it knows /etc/hosts and the
// search domains. It has few threads, which it never gives back early. Invariants: a name is asked for once at a
// time; some threads stay free for the proxy's own look-ups, such as that of the manager.
import type { LookupAddress } from "node:dns";

export type Resolve = (host: string, signal: AbortSignal) => Promise<readonly LookupAddress[]>;

/** libuv lets look-ups use half of its threads (src/proxy/main.ts), which are 8. */
const MAX_AT_ONCE = 6;

interface Question {
  readonly host: string;
  readonly askers: AbortSignal[];
  readonly answer: PromiseWithResolvers<readonly LookupAddress[]>;
}

/** A look-up that waits is left out if all who have asked have left. */
export function createLookups(lookup: (host: string) => ReturnType<Resolve>, maxAtOnce = MAX_AT_ONCE): Resolve {
  const open = new Map<string, Question>();
  const waiting: Question[] = [];
  let running = 0;
  const ask = async ({ host, answer }: Question): Promise<void> => {
    running++;
    try {
      answer.resolve(await lookup(host));
    } catch (error) {
      answer.reject(error);
    }
    running--;
    open.delete(host);
    askNext();
  };
  const askNext = (): void => {
    while (running < maxAtOnce) {
      const question = waiting.shift();
      if (question === undefined) return;
      if (question.askers.some(({ aborted }) => !aborted)) void ask(question);
      else open.delete(question.host);
    }
  };
  return (host, signal) => {
    const known = open.get(host);
    if (known !== undefined) {
      known.askers.push(signal);
      return known.answer.promise;
    }
    const question: Question = { host, askers: [signal], answer: Promise.withResolvers() };
    open.set(host, question);
    waiting.push(question);
    askNext();
    return question.answer.promise;
  };
}
