// @ts-check
import { Signal } from "./signal.js";

// What other pages and programs change, as the service reports it in `GET v1/events` (server-sent events). A hidden page
// doesn't listen, because a browser opens only six connections to a server for all of its pages.

/** The changes of recordings. */
export class Changes {
  /**
   * A recording, as it is since it was added or changed.
   * @type {Signal<any>}
   */
  changed = new Signal();
  /**
   * The id of a recording that was deleted.
   * @type {Signal<string>}
   */
  deleted = new Signal();
  /**
   * The page may have missed something: it listens again, or the service no longer has all changes.
   * @type {Signal<void>}
   */
  missed = new Signal();
  /** @type {EventSource | null} */
  #source = null;
  #hasListened = false;

  constructor() {
    document.addEventListener("visibilitychange", () => this.#listen());
    this.#listen();
  }

  #listen() {
    if (document.hidden) {
      this.#source?.close();
      this.#source = null;
      return;
    }
    if (this.#source) return;
    const source = this.#source = new EventSource("v1/events");
    source.addEventListener("open", () => {
      if (this.#hasListened) this.missed.emit();
      this.#hasListened = true;
    });
    source.addEventListener("resync", () => this.missed.emit());
    source.addEventListener("recording", event => this.changed.emit(JSON.parse(event.data)));
    source.addEventListener("deleted", event => this.deleted.emit(JSON.parse(event.data).id));
  }
}
