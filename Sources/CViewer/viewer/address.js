// @ts-check
// The page's address: #<recording>&with=<recording>,<recording>&view=12.5-20&mark=1.25-2.75&noise=0-1.5, times in seconds.
// A link opens the same view: `with` lists other results of the same source that are shown.

/** @typedef {import("./view.js").Span} Span */

/**
 * @param {string} hash
 * @returns {{ id: string, others: string[], view: Span | null, mark: Span | null, noise: Span | null }}
 */
export function readAddress(hash) {
  const [id, ...rest] = hash.replace(/^#/, "").split("&");
  const fields = new URLSearchParams(rest.join("&"));
  const isID = (/** @type {string} */ text) => /^[0-9a-f-]{36}$/.test(text);
  return {
    id: isID(id) ? id : "", others: (fields.get("with") ?? "").split(",").filter(isID),
    view: span(fields.get("view")), mark: span(fields.get("mark")), noise: span(fields.get("noise")),
  };
}

/**
 * @param {import("./session.js").Session} session
 * @param {import("./view.js").View} view
 */
export function writeAddress({ original, cleaned, results }, view) {
  const open = cleaned ?? original;
  if (!open) return "";
  const parts = [open.recording.id], others = results.filter(layer => layer !== cleaned), { target, duration } = view;
  if (others.length) parts.push(`with=${others.map(layer => layer.recording.id)}`);
  const add = (/** @type {string} */ name, /** @type {Span | null} */ value) => {
    if (value) parts.push(`${name}=${round(value.start)}-${round(value.end)}`);
  };
  if (target.start > 0 || target.end < duration) add("view", target);
  add("mark", view.selection);
  add("noise", view.noise);
  return `#${parts.join("&")}`;
}

/**
 * Six digits are finer than a frame.
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
