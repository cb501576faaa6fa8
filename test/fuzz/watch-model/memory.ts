// What a client of the model test of watches knows, and the version from which it continues.

export interface SeenEvent {
  readonly type: string;
  readonly key: string;
  readonly namespace: string;
  readonly version: number;
}

export class Memory {
  /** The objects that the client believes to exist, by `namespace/name`, with their versions. */
  readonly state: Map<string, number>;
  /** The version of its list, or of its create. */
  since: number | undefined;
  /** What it was shown after that. */
  events: SeenEvent[] = [];
  /** The version to continue from. Undefined if it has to list. */
  position: number | undefined;
  /** The highest position since the list. */
  reached: number | undefined;
  /** The number of lists and whole initial events. */
  lists = 0;

  /** @param created the object that the client has created before it knows anything else */
  constructor(created?: readonly [key: string, version: number]) {
    this.state = new Map(created && [created]);
    this.since = created?.[1];
    this.position = this.since;
    this.reached = this.since;
  }

  /** The client has listed. */
  replace(version: number, objects: Iterable<readonly [string, number]>): void {
    this.state.clear();
    for (const [key, of] of objects) this.state.set(key, of);
    this.events = [];
    this.since = version;
    this.position = version;
    this.reached = version;
    this.lists++;
  }

  take(event: SeenEvent): void {
    this.events.push(event);
    apply(event, this.state);
  }

  /** An event or a bookmark of the version was read. */
  goOn(version: number): void {
    this.position = version;
    this.reached = Math.max(this.reached ?? 0, version);
  }
}

/** Adds the event's object to those that exist, or removes it. */
export function apply({ type, key, version }: SeenEvent, state: Map<string, number>): void {
  if (type === "DELETED") state.delete(key);
  else state.set(key, version);
}
