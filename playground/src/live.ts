// An event's map as it changes: the whole first, then what is different, again after every break.
import { connection } from "./api";
import type { WatchSubscription } from "./gql/graphql";
import { WATCH } from "./operations";

export type Update = WatchSubscription["seatMapChanged"];

export type Listener = {
  update: (update: Update) => void;
  /** Whether what is shown is what is, and the server's time of the last word. */
  state: (live: boolean, asOf: string | null) => void;
  failed: (message: string) => void;
};

/** Watches until it is told to stop. */
export function watch(id: string, listener: Listener): () => void {
  let version: string | null = null, asOf: string | null = null, stopped = false;
  const client = connection({
    opened: () => listener.state(true, asOf),
    closed: () => { if (!stopped) listener.state(false, asOf); },
  });
  // Read anew each time the connection comes back, so that it goes on where it was.
  const begin = () => {
    if (stopped) return;
    client.subscribe<WatchSubscription>({ query: WATCH.toString(), variables: { id, get after() { return version; } } }, {
      next: ({ data, errors }) => {
        if (errors?.[0]) listener.failed(errors[0].message);
        if (!data) return;
        const update = data.seatMapChanged;
        version = update.version;
        if ("asOf" in update) asOf = update.asOf;
        listener.update(update);
      },
      error: (why) => {
        // A list of errors is an answer: it will not be another one soon.
        if (Array.isArray(why)) listener.failed(why[0]?.message ?? "The map can't be watched.");
        setTimeout(begin, 5000);
      },
      complete: () => setTimeout(begin, 500),
    });
  };
  begin();
  const away = () => { if (!stopped) listener.state(false, asOf); };
  addEventListener("offline", away);
  return () => { stopped = true; removeEventListener("offline", away); void client.dispose(); };
}

