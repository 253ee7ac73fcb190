// @ts-check
import { parseTime } from "./time.js";

// The page's address: #<recording>&with=<recording>,<recording>&view=12.5-20&mark=1.25-2.75&noise=0-1.5&t=1:02:03.5, times in
// seconds, except for the playhead's.
// A link opens the same view: `with` lists other results of the same source that are shown. One that shares a recording
// with somebody who has no key begins with #recording=<recording>&token=<token>.

/** @typedef {import("./view.js").Span} Span */

/**
 * @param {string} hash
 * @returns {{ id: string, token: string, others: string[], view: Span | null, mark: Span | null, noise: Span | null, at: number }} `token` is
 *   empty unless the link shares the recording
 */
export function readAddress(hash) {
  const text = hash.replace(/^#/, ""), [first, ...rest] = text.split("&"), isShared = first.startsWith("recording=");
  const fields = new URLSearchParams(isShared ? text : rest.join("&")), id = isShared ? fields.get("recording") ?? "" : first;
  const isID = (/** @type {string} */ text) => /^[0-9a-f-]{36}$/.test(text), token = fields.get("token") ?? "";
  return {
    id: isID(id) ? id : "", token: !isShared ? "" : /^[\w.-]+$/.test(token) ? token : "invalid", others: (fields.get("with") ?? "").split(",").filter(isID),
    view: span(fields.get("view")), mark: span(fields.get("mark")), noise: span(fields.get("noise")),
    at: parseTime(fields.get("t") ?? "") || 0,
  };
}

/**
 * @param {import("./session.js").Session} session
 * @param {import("./view.js").View} view
 * @param {import("./credentials.js").Share | null} share
 */
export function writeAddress({ original, cleaned, results }, view, share) {
  const open = cleaned ?? original, shared = share ? `recording=${share.recording}&token=${share.token}` : "";
  if (!open) return shared && `#${shared}`;
  const parts = [shared || open.recording.id], others = results.filter(layer => layer !== cleaned), { target, duration } = view;
  if (others.length) parts.push(`with=${others.map(layer => layer.recording.id)}`);
  const add = (/** @type {string} */ name, /** @type {Span | null} */ value) => {
    if (value) parts.push(`${name}=${round(value.start)}-${round(value.end)}`);
  };
  if (target.start > 0 || target.end < duration) add("view", target);
  add("mark", view.selection);
  add("noise", view.noise);
  if (view.playhead >= 0.01) parts.push(`t=${clock(view.playhead)}`);
  return `#${parts.join("&")}`;
}

/** Writes a time as people write it, in any language with a point before the decimals. */
function clock(/** @type {number} */ seconds) {
  const whole = Math.floor(seconds + 0.005), parts = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const hundredths = Math.round((seconds - whole) * 100);
  if (!parts[0]) parts.shift();
  const text = parts.map((part, k) => (k ? String(part).padStart(2, "0") : part)).join(":");
  return hundredths > 0 ? `${text}.${String(hundredths).padStart(2, "0")}` : text;
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
