// One budget of bytes for many clients, each of which holds bytes for as long as somebody else decides. Invariant: when more is held than
// the budget, the client that holds most loses its largest hold, of equal ones the newest. So a client alone may use all of it, and one
// below an equal share never loses anything.

/** A part of the budget, for one client. */
export interface MemoryShare {
  /** @param cut called with the bytes of the hold when it has to go; they are counted no more */
  hold(cut: (bytes: number) => void): MemoryHold;
}

export interface MemoryHold {
  /** The bytes that are held now. May call `cut`, also that of another hold. */
  set(bytes: number): void;
  end(): void;
}

interface Held {
  bytes: number;
  readonly cut: (bytes: number) => void;
}

interface Client {
  total: number;
  readonly holds: Set<Held>;
}

export function createFairMemory(maxBytes: number) {
  const clients = new Map<string, Client>();
  let total = 0;
  const add = (name: string, held: Held, bytes: number) => {
    const client = clients.get(name) ?? { total: 0, holds: new Set() };
    const change = bytes - held.bytes;
    held.bytes = bytes;
    client.total += change;
    total += change;
    if (bytes > 0) client.holds.add(held);
    else client.holds.delete(held);
    if (client.holds.size > 0) clients.set(name, client);
    else clients.delete(name);
  };
  /** Few clients hold something at a time, and only an excess looks for them. */
  const cutLargest = () => {
    const [name, client] = largest(clients, ([, each]) => each.total);
    const held = largest(client.holds, (each) => each.bytes);
    const { bytes } = held;
    add(name, held, 0);
    held.cut(bytes);
  };
  return {
    of: (client: string): MemoryShare => ({
      hold(cut) {
        const held: Held = { bytes: 0, cut };
        let isOver = false;
        return {
          set(bytes) {
            if (isOver) return;
            add(client, held, bytes);
            while (total > maxBytes) cutLargest();
          },
          end() {
            isOver = true;
            add(client, held, 0);
          },
        };
      },
    }),
    get heldBytes(): number {
      return total;
    },
  };
}

/** The last one with the highest number. There is at least one. */
function largest<T>(items: Iterable<T>, numberOf: (item: T) => number): T {
  return [...items].reduce((most, item) => (numberOf(item) >= numberOf(most) ? item : most));
}
