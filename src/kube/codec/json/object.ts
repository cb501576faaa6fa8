// Reads the metadata of a JSON object: of an item, of a Table row's object or of a watch event's object.
// `meta` exists only if every decoder reads the same, even one that ignores case or takes the first of two
// equal keys.
import { asBuffer, equalsAscii } from "../base/bytes.ts";
import { type ItemMeta, type ListPart, noLabels, type ReadOptions } from "../base/types.ts";
import { OPEN_BRACE, QUOTE } from "./scan.ts";
import { type KeyName, keyName, textOf } from "./string.ts";
import { endsEarly, walkerAt } from "./text.ts";
import type { JsonWalker } from "./walker.ts";

/** A key that the reader looks for. `bit` marks the key in `#seen`. */
interface ReadKey {
  readonly name: KeyName;
  readonly bit: number;
}

const OBJECT: ReadKey = { name: keyName("object"), bit: 1 };
const METADATA: ReadKey = { name: keyName("metadata"), bit: 2 };
const NAMESPACE: ReadKey = { name: keyName("namespace"), bit: 4 };
const NAME: ReadKey = { name: keyName("name"), bit: 8 };
const LABELS: ReadKey = { name: keyName("labels"), bit: 16 };
const RESOURCE_VERSION = keyName("resourceVersion");

const NO_LABELS = noLabels();

// Each level is inside the previous one.
const IN_ROW = 0;
const IN_OBJECT = 1;
const IN_METADATA = 2;
const IN_LABELS = 3;

/** The use of the value that is being read. `noLabels`: labels that are not an object must be null. */
type Pending = "namespace" | "name" | "label" | "noLabels" | "version" | "noVersion";

/** Reads one object at a time, and is reused, so that an item allocates only its strings. */
export class JsonObjectReader {
  /** One of the read keys occurs twice or in another case. */
  ambiguous = false;
  namespace = "";
  name = "";
  /** The place of the name's string, with its quotes; 0 for no name. Valid only over complete text. */
  nameStart = 0;
  nameEnd = 0;
  readonly #walker: JsonWalker;
  readonly #readsLabels: boolean;
  readonly #readsVersions: boolean;
  readonly #onOther: (() => void) | undefined;
  #labels = NO_LABELS;
  #version = "";
  #readable = false;
  #root = IN_OBJECT;
  #level = IN_OBJECT;
  #pending: Pending | undefined;
  #seen = 0;
  #versionSeen = false;
  #label: string | undefined;
  #lastNamespace = "";

  /** @param onOther called for each other member of the object; by default they are skipped */
  constructor(walker: JsonWalker, { labels = false, versions = false }: ReadOptions = {}, onOther?: () => void) {
    this.#walker = walker;
    this.#readsLabels = labels;
    this.#readsVersions = versions;
    this.#onOther = onOther;
  }

  /** Undefined if the metadata cannot be read with certainty. */
  get meta(): ItemMeta | undefined {
    if (!this.#readable || (this.#seen & METADATA.bit) === 0) return undefined;
    const { namespace, name } = this;
    const meta = this.#readsLabels ? { namespace, name, labels: this.#labels } : { namespace, name };
    return this.#readsVersions ? { ...meta, resourceVersion: this.#version } : meta;
  }

  /** Begins with the object, or the Table row, at which the walker is. */
  begin(part: ListPart): void {
    this.#readable = true;
    this.ambiguous = false;
    this.namespace = "";
    this.name = "";
    this.nameStart = 0;
    this.nameEnd = 0;
    this.#pending = undefined;
    this.#seen = 0;
    this.#versionSeen = false;
    this.#version = "";
    if (this.#readsLabels) this.#labels = noLabels();
    this.#root = part === "row" ? IN_ROW : IN_OBJECT;
    this.#level = this.#walker.enter(OPEN_BRACE) ? this.#root : this.#root - 1;
  }

  /** Reads an object that is complete. Throws `CODEC_MALFORMED` if it is not. */
  readWhole(part: ListPart): void {
    this.begin(part);
    if (!this.read()) throw endsEarly();
  }

  /** Continues where it stopped. True once the walker is after the object, false if it needs more bytes. */
  read(): boolean {
    const walker = this.#walker;
    while (this.#level >= this.#root) {
      if (this.#pending !== undefined) {
        if (!walker.skip()) return false;
        this.#takeValue();
      }
      const token = walker.next();
      if (token === "more") return false;
      if (token === "closed") this.#level--;
      else this.#readMember();
    }
    return walker.skip();
  }

  refuse(): void {
    this.#readable = false;
  }

  #readMember(): void {
    const walker = this.#walker;
    switch (this.#level) {
      case IN_METADATA:
        this.#readMetaMember();
        return;
      case IN_OBJECT:
        if (this.#takes(METADATA)) this.#descend();
        else this.#onOther?.();
        return;
      case IN_ROW:
        if (this.#takes(OBJECT)) this.#descend();
        return;
      case IN_LABELS:
        this.#label = walker.keyText();
        this.#expectText("label");
    }
  }

  #readMetaMember(): void {
    if (this.#takes(NAMESPACE)) this.#expectText("namespace");
    else if (this.#takes(NAME)) this.#expectText("name");
    else if (this.#readsLabels && this.#takes(LABELS)) {
      if (this.#walker.enter(OPEN_BRACE)) this.#level++;
      else this.#pending = "noLabels";
    } else if (this.#readsVersions && this.#walker.matches(RESOURCE_VERSION) !== "no") {
      // The owner does not depend on the version, so a second version makes only the version unknown.
      if (this.#walker.valueByte === QUOTE) this.#pending = this.#versionSeen ? "noVersion" : "version";
      this.#versionSeen = true;
    }
  }

  // True for the first key of exactly this name. A second key, or another case, makes the object unreadable.
  #takes({ name, bit }: ReadKey): boolean {
    const match = this.#walker.matches(name);
    if (match === "no") return false;
    const isFirst = (this.#seen & bit) === 0;
    if (match === "exact" && isFirst) {
      this.#seen |= bit;
      return true;
    }
    this.#readable = false;
    this.ambiguous = true;
    return false;
  }

  #descend(): void {
    if (this.#walker.enter(OPEN_BRACE)) this.#level++;
    else this.#readable = false;
  }

  #expectText(field: Pending): void {
    if (this.#walker.valueByte === QUOTE) this.#pending = field;
    else this.#readable = false;
  }

  #takeValue(): void {
    const { bytes, valueStart, valueEnd } = this.#walker;
    switch (this.#pending) {
      case "namespace":
        this.namespace = this.#namespaceText(bytes, valueStart + 1, valueEnd - 1);
        break;
      case "name":
        this.nameStart = valueStart;
        this.nameEnd = valueEnd;
        this.name = this.#text(bytes, valueStart + 1, valueEnd - 1);
        break;
      case "version":
        this.#version = textOf(bytes, valueStart + 1, valueEnd - 1) ?? "";
        break;
      case "noVersion":
        this.#version = "";
        break;
      case "label":
        this.#takeLabel(this.#text(bytes, valueStart + 1, valueEnd - 1));
        break;
      default:
        if (!equalsAscii(bytes, valueStart, valueEnd, "null")) this.#readable = false;
    }
    this.#pending = undefined;
  }

  // Keys of a map that differ by case are different for every decoder. A repeated key is read differently.
  #takeLabel(value: string): void {
    const key = this.#label;
    if (key === undefined || key in this.#labels) this.#readable = false;
    else this.#labels[key] = value;
  }

  // Lists are sorted by namespace, so the next one is most often the same, and no new string is needed.
  #namespaceText(bytes: Buffer, start: number, end: number): string {
    if (equalsAscii(bytes, start, end, this.#lastNamespace)) return this.#lastNamespace;
    const text = this.#text(bytes, start, end);
    // The same bytes with a backslash would be an escape.
    if (!text.includes("\\")) this.#lastNamespace = text;
    return text;
  }

  #text(bytes: Buffer, start: number, end: number): string {
    const text = textOf(bytes, start, end);
    if (text === undefined) this.#readable = false;
    return text ?? "";
  }
}

export function readObjectMeta(body: Uint8Array, options: ReadOptions): ItemMeta | undefined {
  const reader = new JsonObjectReader(walkerAt(asBuffer(body)), options);
  reader.readWhole("item");
  return reader.meta;
}
