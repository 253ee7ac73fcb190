// @ts-check
import { isAbort, pause, Refusal } from "./service.js";
import { Signal } from "./signal.js";

// What other pages and programs change, as the service reports it in `GET v1/events` (server-sent events), read with fetch,
// because an EventSource can't send a key. A hidden page doesn't listen, because a browser opens only six connections to a
// server for all of its pages.

/** The pause before the page listens again after the stream has ended and the longest one, in milliseconds. */
const pace = 2000, slowest = 60_000;
/** The statuses of refusals for good: a link that has ended, a right that is missing, a service without events. */
const final = [401, 403, 404];

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
  /** @type {AbortController | null} */
  #control = null;
  #hasListened = false;

  /** @param {import("./service.js").Service} service */
  constructor(service) {
    this.service = service;
    document.addEventListener("visibilitychange", () => this.#turn());
    // A page that the browser keeps for Back must not keep its connection.
    addEventListener("pagehide", () => this.#stop());
    addEventListener("pageshow", () => this.#turn());
    this.#turn();
  }

  #stop() {
    this.#control?.abort();
    this.#control = null;
  }

  #turn() {
    if (document.hidden) this.#stop();
    else if (!this.#control) {
      this.#control = new AbortController();
      void this.#listen(this.#control.signal);
    }
  }

  async #listen(/** @type {AbortSignal} */ signal) {
    for (let delay = pace; !signal.aborted; delay = Math.min(delay * 2, slowest)) {
      try {
        const { body } = await this.service.fetch("v1/events", { signal });
        if (this.#hasListened) this.missed.emit();
        this.#hasListened = true;
        delay = pace;
        if (body) for await (const { name, data } of eventsOf(body)) this.#take(name, data);
      } catch (error) {
        if (isAbort(error) || error instanceof Refusal && final.includes(error.status)) return;
      }
      await pause(delay, signal).catch(() => { });
    }
  }

  #take(/** @type {string} */ name, /** @type {string} */ data) {
    if (name === "resync") this.missed.emit();
    if (name === "recording") this.changed.emit(JSON.parse(data));
    if (name === "deleted") this.deleted.emit(JSON.parse(data).id);
  }
}

/**
 * Yields the events of a stream, in the form in which this service writes them: lines `event: …`, `id: …` and one
 * `data: …`, then an empty line.
 * @param {ReadableStream<Uint8Array>} body
 */
async function* eventsOf(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const blocks = (text + value).split("\n\n");
    text = blocks.pop() ?? "";
    for (const block of blocks) {
      const fields = new Map(block.split("\n").map(line => /** @type {[string, string]} */ (/^(\w*): ?(.*)$/.exec(line)?.slice(1) ?? ["", ""])));
      yield { name: fields.get("event") ?? "", data: fields.get("data") ?? "" };
    }
  }
}
