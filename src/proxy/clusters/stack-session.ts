// The routes inside a cluster as one stack of layers follows them. Invariant: no listener of the stack outlives it. An edited cluster gets a
// new stack and keeps its routes, so listeners of all earlier stacks would pile up there.
import type { ChangeListener } from "../../mesh/ownership/enforced.ts";
import type { Session } from "../session/session.ts";

export function createStackSession(routes: Session) {
  const subscriptions = new Set<() => void>();
  const session: Session = Object.assign(Object.create(routes) as Session, {
    onChange(listener: ChangeListener) {
      const unsubscribe = routes.onChange(listener);
      const end = () => {
        subscriptions.delete(end);
        unsubscribe();
      };
      subscriptions.add(end);
      return end;
    },
  });
  return {
    session,
    /** Ends all subscriptions so far. What subscribes later, such as a call that has waited, ends by itself. */
    end(): void {
      for (const end of subscriptions) end();
    },
  };
}
