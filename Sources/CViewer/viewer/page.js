// @ts-check
import { fillTexts } from "./texts.js";

/**
 * Returns an element that must exist.
 * @param {string} id
 * @returns {any}
 */
export function find(id) {
  const element = document.getElementById(id);
  if (!element) throw new Error(`the page has no #${id}`);
  return element;
}

/**
 * A copy of a template's element, with its texts.
 * @param {string} id
 * @returns {HTMLElement}
 */
export function copy(id) {
  const element = find(id).content.firstElementChild.cloneNode(true);
  fillTexts(element);
  return element;
}

/**
 * The part of an element with this name.
 * @param {Element} element
 * @param {string} name
 * @returns {any}
 */
export function part(element, name) { return element.querySelector(`[data-part="${name}"]`); }

/**
 * Sets an element's label for screen readers and its tooltip.
 * @param {HTMLElement} element
 * @param {string} text
 */
export function label(element, text) {
  if (element.title === text) return;
  element.title = text;
  element.setAttribute("aria-label", text);
}

/**
 * Makes a toolbar one stop for the Tab key; arrows, Home and End move within it (WAI-ARIA, toolbar pattern).
 * @param {HTMLElement} toolbar
 */
export function rove(toolbar) {
  const buttons = () => [.../** @type {NodeListOf<HTMLButtonElement>} */ (toolbar.querySelectorAll("button"))];
  const settle = (/** @type {HTMLButtonElement | undefined} */ stop) => { for (const button of buttons()) button.tabIndex = button === stop ? 0 : -1; };
  const check = () => {
    const usable = buttons().filter(button => !button.hidden && !button.disabled);
    if (!usable.some(button => button.tabIndex === 0)) settle(usable[0]);
  };
  settle(undefined);
  check();
  // The stop may be hidden or disabled later.
  new MutationObserver(check).observe(toolbar, { subtree: true, attributeFilter: ["hidden", "disabled"] });
  // A choice in a toolbar is a stop of its own, and its keys are its own.
  const stopOf = (/** @type {Event} */ { target }) => buttons().find(button => button === target);
  toolbar.addEventListener("focusin", event => {
    const stop = stopOf(event);
    if (stop) settle(stop);
  });
  toolbar.addEventListener("keydown", event => {
    const stop = stopOf(event);
    if (!stop) return;
    const usable = buttons().filter(button => button.offsetParent !== null && !button.disabled), forward = getComputedStyle(toolbar).direction === "rtl" ? -1 : 1;
    const at = usable.indexOf(stop), { length } = usable;
    const to = { ArrowRight: at + forward, ArrowLeft: at - forward, Home: 0, End: length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    usable[(to + length) % length].focus();
  });
}

/**
 * Downloads something of a recording as a file.
 * @param {import("./service.js").Service} service
 * @param {string} path
 */
export async function download(service, path) {
  await service.admit(/** @type {string} */ (path.split(/[/?]/)[2]));
  const link = document.createElement("a");
  [link.href, link.download] = [service.credentials.address(path), ""];
  link.click();
}

/**
 * Calls `action` when calls have stopped for a while.
 * @param {number} milliseconds
 * @param {() => void} action
 */
export function afterCalm(milliseconds, action) {
  let timer = 0;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(action, milliseconds);
  };
}

/** Resolves when the next frame is drawn and its tiles are asked for; soon, in a page that isn't visible. */
export function afterFrame() {
  return new Promise(resolve => {
    const timer = setTimeout(resolve, 100);
    requestAnimationFrame(() => {
      clearTimeout(timer);
      setTimeout(resolve);
    });
  });
}

/** Lets the page draw between parts of long work. A timer would be slowed down in a page that isn't visible. */
export function breathe() {
  return new Promise(resolve => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve(undefined);
    };
    port2.postMessage(null);
  });
}
