// @ts-check
// The page's address: #<recording>&view=12.5-20&mark=1.25-2.75&noise=0-1.5, times in seconds. A link opens the same place.

/** @typedef {import("./view.js").Span} Span */

/**
 * @param {string} hash
 * @returns {{ id: string, view: Span | null, mark: Span | null, noise: Span | null }}
 */
export function readAddress(hash) {
  const [id, ...rest] = hash.replace(/^#/, "").split("&");
  const fields = new URLSearchParams(rest.join("&"));
  return {
    id: /^[0-9a-f-]{36}$/.test(id) ? id : "",
    view: span(fields.get("view")), mark: span(fields.get("mark")), noise: span(fields.get("noise")),
  };
}

/**
 * @param {string} id
 * @param {import("./view.js").View} view
 */
export function writeAddress(id, view) {
  if (!id) return "";
  const parts = [id], { target, duration } = view;
  const add = (/** @type {string} */ name, /** @type {Span | null} */ value) => {
    if (value) parts.push(`${name}=${round(value.start)}-${round(value.end)}`);
  };
  if (target.start > 0 || target.end < duration) add("view", target);
  add("mark", view.selection);
  add("noise", view.noise);
  return `#${parts.join("&")}`;
}

/**
 * Six digits are less than a frame.
 * @param {number} seconds
 */
const round = seconds => Number(seconds.toFixed(6));

/**
 * @param {string | null} text
 * @returns {Span | null}
 */
function span(text) {
  const match = /^(\d+(?:\.\d+)?)-(\d+(?:\.\d+)?)$/.exec(text ?? "");
  return match && Number(match[1]) < Number(match[2]) ? { start: Number(match[1]), end: Number(match[2]) } : null;
}
