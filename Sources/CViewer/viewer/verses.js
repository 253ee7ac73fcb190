// @ts-check
import { isRightToLeft, wordsOf } from "./words.js";

// What the singing view shows: labels divided into rows that fit its width, and when each row moves, fills and is counted
// in. Pure functions: times in seconds of the recording, lengths in CSS pixels.

/** @typedef {import("./words.js").Label} Label */
/**
 * @typedef {object} Row a line as it is shown
 * @property {Label} label
 * @property {string} text
 * @property {boolean} isRTL
 * @property {number} start of its first word
 * @property {number} end of its last word
 * @property {number} width of its text
 * @property {number} scale by which its text is made smaller to fit
 * @property {{ start: number, end: number, from: number, to: number }[]} edges when the fill goes from where to where
 */
/** @typedef {{ at: number, length: number }} Turn when the view begins to turn to a row, and how long it takes */

/** The least silence before a row that is counted in, and the seconds of the count. */
export const leastSilence = 3, count = 3;
/** A turn takes this long if there is time, and at least the other, in seconds. */
const calmTurn = 0.45, quickTurn = 0.14;

/**
 * Divides a label into rows that fit a width; one that doesn't is made smaller.
 * @param {Label} label
 * @param {number} room
 * @param {(text: string) => number} measure
 * @returns {Row[]}
 */
export function rowsOf(label, room, measure) {
  const words = wordsOf(label), whole = measure(label.text), even = whole / Math.ceil(whole / room);
  /** @type {Row[]} */
  const rows = [];
  for (let first = 0; first < words.length;) {
    let last = first;
    const isBroken = () => label.text.slice(words[last].to, words[last + 1].from).includes("\n");
    const width = (/** @type {number} */ end) => measure(label.text.slice(words[first].from, words[end].to));
    // Rows of about the same length, so that no word is left alone.
    while (last + 1 < words.length && !isBroken() && width(last) < even && width(last + 1) <= room) last++;
    const from = words[first].from, text = label.text.slice(from, words[last].to), isRTL = isRightToLeft(label.text);
    const natural = measure(text), scale = Math.min(1, room / Math.max(1, natural));
    const at = (/** @type {number} */ place) => measure(text.slice(0, place - from)) * scale;
    rows.push({
      label, text, isRTL, start: words[first].start, end: words[last].end, width: natural * scale, scale,
      edges: words.slice(first, last + 1).map(word => ({ start: word.start, end: word.end, from: at(word.from), to: at(word.to) })),
    });
    first = last + 1;
  }
  return rows;
}

/**
 * Returns when the view turns to each row: in the silence before it if there is one, early enough to be there when it
 * begins, and quickly where lines are short.
 * @param {Row[]} rows
 * @returns {Turn[]}
 */
export function turnsOf(rows) {
  /** @type {Turn[]} */
  const turns = [];
  rows.forEach((row, k) => {
    const before = rows[k - 1];
    if (!before) return turns.push({ at: -Infinity, length: 0 });
    const silence = Math.max(0, row.start - before.end), apart = Math.max(0, row.start - before.start);
    const length = Math.min(apart * 0.6, Math.max(quickTurn, Math.min(calmTurn, silence)));
    const wanted = Math.min(before.end + Math.min(0.4, silence / 3), row.start - length);
    const free = turns[k - 1].at + turns[k - 1].length, at = Math.max(wanted, Number.isFinite(free) ? free : wanted);
    turns.push({ at, length: Math.max(0.001, Math.min(length, row.start - at)) });
  });
  return turns;
}

/** Whether a row is counted in. */
export const isCounted = (/** @type {Row[]} */ rows, /** @type {number} */ k) => (
  rows[k].start - (rows[k - 1]?.end ?? 0) >= leastSilence - 1e-6);

/**
 * Returns how far a row is filled at some instants: what an animation goes through, as shares of the row's time.
 * @param {Row} row
 * @returns {{ offset: number, x: number, isWord: boolean }[]} `x` from where the text begins; `isWord`: a word begins here
 */
export function fillOf({ start, end, edges }) {
  const length = Math.max(0.001, end - start), points = [];
  let last = 0;
  for (const edge of edges) {
    for (const [seconds, x, isWord] of /** @type {[number, number, boolean][]} */ ([[edge.start, edge.from, true], [edge.end, edge.to, false]])) {
      last = Math.min(1, Math.max(last, (seconds - start) / length));
      points.push({ offset: last, x, isWord });
    }
  }
  return points;
}
