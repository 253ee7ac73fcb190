// @ts-check
import { find } from "./page.js";
import { texts } from "./texts.js";

/** How long a part of the waveform may be missing before the page says so, and before it says more, in milliseconds. */
const patience = 300, impatience = 4000;

/** Says that a part of the waveform isn't there yet. */
export class LoadingNote {
  #isMissing = false;
  /** @type {number[]} */
  #timers = [];

  constructor() { this.element = /** @type {HTMLElement} */ (find("loading")); }

  update(/** @type {boolean} */ isMissing) {
    if (isMissing === this.#isMissing) return;
    this.#isMissing = isMissing;
    for (const timer of this.#timers) clearTimeout(timer);
    this.element.hidden = true;
    const say = (/** @type {string} */ text) => {
      this.element.hidden = false;
      this.element.textContent = text;
    };
    this.#timers = isMissing ? [setTimeout(say, patience, texts.loading), setTimeout(say, impatience, texts.loadingLong)] : [];
  }
}
