// @ts-check

/**
 * An event source: others subscribe, it emits.
 * @template T
 */
export class Signal {
  /** @type {Set<(value: T) => void>} */
  #listeners = new Set();

  /**
   * @param {(value: T) => void} listener
   * @returns {() => void} what ends the subscription
   */
  subscribe(listener) {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** @param {T} [value] */
  emit(value) {
    for (const listener of this.#listeners) listener(/** @type {T} */ (value));
  }
}
