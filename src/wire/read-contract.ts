// Reads the messages of mesh.proto. Pure. protobufjs, which reads any contract, takes 10 MB of memory and 80 ms
// of processor time at each start (docs/performance.md). Invariant: what this reader does not know of the
// language is an error, so that a new line of the contract is never read as another one.
import { MeshError } from "../base/errors.ts";
import type { FieldShape, MessageShape } from "./bounded-decoder.ts";

const SCALARS = ["string", "bytes", "bool", "uint32", "uint64"] as const;
const DEFAULTS: Readonly<Record<(typeof SCALARS)[number], unknown>> = {
  string: "",
  bytes: Buffer.alloc(0),
  bool: false,
  uint32: 0,
  uint64: 0,
};
const TOKEN = /[\w.]+|"[^"]*"|\S/g;
const NAME = /^[A-Za-z]\w*$/;
const NUMBER = /^\d+$/;

/**
 * The shapes of all messages by name.
 * @throws MeshError `PROTO_INVALID` if the text has something that the decoder does not know
 */
export function readContract(text: string): ReadonlyMap<string, MessageShape> {
  const tokens = text.replaceAll(/\/\/.*/g, "").match(TOKEN) ?? [];
  const shapes = new Map<string, MessageShape>();
  const referred = new Set<string>();
  let at = 0;

  const next = (wanted?: string | RegExp): string => {
    const token = tokens[at++] ?? "the end";
    if (wanted === undefined || (typeof wanted === "string" ? token === wanted : wanted.test(token))) return token;
    throw invalid(`${token} behind ${tokens.slice(Math.max(0, at - 4), at - 1).join(" ")}`);
  };
  const skipBehind = (end: string) => {
    while (next(/^[^{]|^\{$/) !== end) if (at >= tokens.length) throw invalid(`no ${end}`);
  };
  const numberOf = (): number => {
    next("=");
    const number = Number(next(NUMBER));
    next(";");
    return number;
  };
  const readEnum = (): ReadonlyMap<number, string> => {
    const values = new Map<number, string>();
    next("{");
    for (let name = next(); name !== "}"; name = next()) values.set(numberOf(), name);
    return values;
  };
  const readField = (first: string, oneof: string | undefined, enums: Enums): [number, FieldShape] => {
    const isRepeated = first === "repeated";
    const type = isRepeated ? next(NAME) : first;
    const name = camelCase(next(NAME));
    const common = { name, isRepeated, oneof };
    const scalar = SCALARS.find((each) => each === type);
    const values = enums.get(type);
    const number = numberOf();
    if (scalar !== undefined) return [number, { ...common, kind: scalar }];
    if (values !== undefined) return [number, { ...common, kind: "enum", values }];
    referred.add(type);
    return [number, { ...common, kind: "message", message: () => shapes.get(type) as MessageShape }];
  };
  const readMessage = (): MessageShape => {
    const fields: [number, FieldShape][] = [];
    const enums = new Map<string, ReadonlyMap<number, string>>();
    let oneof: string | undefined;
    next("{");
    for (let word = next(); word !== "}" || oneof !== undefined; word = next()) {
      if (word === "}") oneof = undefined;
      else if (word === "reserved") skipBehind(";");
      else if (word === "enum") enums.set(next(NAME), readEnum());
      else if (word === "oneof") {
        oneof = next(NAME);
        next("{");
      } else fields.push(readField(word, oneof, enums));
    }
    fields.sort(([a], [b]) => a - b);
    return { fields: new Map(fields), defaults: defaultsOf(fields.map(([, field]) => field)) };
  };

  while (at < tokens.length) {
    const word = next();
    if (word === "message") shapes.set(next(NAME), readMessage());
    else if (word === "service") skipBehind("}");
    else if (word === "syntax" || word === "package") skipBehind(";");
    else throw invalid(word);
  }
  for (const name of referred) if (!shapes.has(name)) throw invalid(`no message or type ${name}`);
  return shapes;
}

type Enums = ReadonlyMap<string, ReadonlyMap<number, string>>;

/** Lists are first. A member of a oneof has no default. */
function defaultsOf(fields: readonly FieldShape[]): Readonly<Record<string, unknown>> {
  const single = fields.filter(({ isRepeated, oneof }) => !isRepeated && oneof === undefined);
  return Object.fromEntries([
    ...fields.filter(({ isRepeated }) => isRepeated).map(({ name }) => [name, Object.freeze([])]),
    ...single.map((field) => [field.name, defaultOf(field)]),
  ]);
}

function defaultOf({ kind, values }: FieldShape): unknown {
  if (kind === "message") return null;
  return kind === "enum" ? values?.get(0) : DEFAULTS[kind];
}

function camelCase(name: string): string {
  return name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

function invalid(what: string): MeshError {
  return new MeshError("PROTO_INVALID", `reading the contract: ${what}`);
}
