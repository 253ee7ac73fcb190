// @ts-check
import { copy, find, part } from "./page.js";

// While a dialog is open, everything outside of it is inert and lies behind it, and of a page in full screen only that
// element is seen.
document.addEventListener("toggle", bringForward, true);
document.addEventListener("close", bringForward, true);
document.addEventListener("fullscreenchange", bringForward);

/** How long a message stays, in milliseconds; one with something to undo stays longer. */
const stay = 5000, stayWithAction = 10_000;

/**
 * Announces something only to screen readers.
 * @param {string} text
 */
export function announce(text) {
  bringForward();
  find("live").textContent = text;
}

/** Moves the messages to where they are seen and heard now. */
function bringForward() {
  // The question for the key, which may come over another dialog, is the page's last one.
  const place = [...document.querySelectorAll("dialog:modal")].pop() ?? document.fullscreenElement ?? document.body;
  for (const id of ["toasts", "live"]) if (find(id).parentElement !== place) place.append(find(id));
}

/**
 * Shows a message for a while.
 * @param {string} text
 * @param {{ isError?: boolean, action?: { text: string, run: () => void }, onGone?: () => void }} options
 */
export function tell(text, { isError = false, action, onGone } = {}) {
  const toast = copy("toast-template");
  part(toast, "text").textContent = text;
  toast.classList.toggle("bad", isError);
  const button = part(toast, "action");
  button.hidden = !action;
  let isGone = false, timer = 0;
  const leave = (/** @type {boolean} */ isUndone) => {
    if (isGone) return;
    isGone = true;
    clearTimeout(timer);
    toast.remove();
    if (!isUndone) onGone?.();
  };
  if (action) {
    button.textContent = action.text;
    button.onclick = () => {
      leave(true);
      action.run();
    };
  }
  part(toast, "close").onclick = () => leave(false);
  // The message stays while the pointer or the focus is on it.
  const wait = () => {
    clearTimeout(timer);
    timer = setTimeout(() => toast.matches(":hover, :focus-within") ? wait() : leave(false), action || isError ? stayWithAction : stay);
  };
  toast.addEventListener("pointerleave", wait);
  toast.addEventListener("focusout", wait);
  wait();
  bringForward();
  find("toasts").append(toast);
  return leave;
}
