// @ts-check
import { find } from "./page.js";

// On small screens, the list of recordings and the settings are drawers: panels that slide over the page. A class of the
// body opens one; where there is room for the panel, the class changes nothing.

/** A panel that buttons open and close, and that Escape and a press beside it close. */
export class Drawer {
  /**
   * @param {string} panel id
   * @param {string} shownClass of the body
   * @param {string[]} buttons ids
   */
  constructor(panel, shownClass, buttons) {
    this.panel = find(panel);
    this.shownClass = shownClass;
    this.buttons = buttons.map(find);
    for (const button of this.buttons) button.addEventListener("click", () => (this.isOpen ? this.close() : this.open(button)));
    find("scrim").addEventListener("click", () => this.close());
    addEventListener("keydown", event => {
      if (event.key !== "Escape" || !this.isOpen || !this.panel.checkVisibility({ visibilityProperty: true })) return;
      event.stopImmediatePropagation();
      this.close();
    }, true);
  }

  #opener = /** @type {HTMLElement | null} */ (null);
  get isOpen() { return document.body.classList.contains(this.shownClass); }

  open(/** @type {HTMLElement} */ opener) {
    this.#opener = opener;
    this.#show(true);
    this.panel.focus({ preventScroll: true });
  }

  close() {
    if (!this.isOpen) return;
    const hadFocus = this.panel.contains(document.activeElement);
    this.#show(false);
    if (hadFocus) this.#opener?.focus({ preventScroll: true });
  }

  #show(/** @type {boolean} */ isShown) {
    document.body.classList.toggle(this.shownClass, isShown);
    for (const button of this.buttons) button.setAttribute("aria-expanded", String(isShown));
  }
}
