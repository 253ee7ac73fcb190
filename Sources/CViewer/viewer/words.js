// @ts-check
// The words of a label: where they are in its text and when they are heard. Pure functions.

/**
 * @typedef {{ start: number, end: number, text: string }} Word
 * @typedef {{ start: number, end: number, text: string, speaker?: string, words?: Word[] }} Label times in seconds
 * @typedef {{ start: number, end: number, from: number, to: number }} Placed a word's times, and its place in the text
 */

/** Scripts that don't separate words. */
const unspaced = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u;
const segmenter = typeof Intl.Segmenter === "function" ? new Intl.Segmenter(undefined, { granularity: "word" }) : null;
/** @type {WeakMap<Label, Placed[]>} */
const known = new WeakMap();

/**
 * Returns the words of a label in the order of its text. If it has no timed words, its time is divided by their lengths.
 * @param {Label} label
 */
export function wordsOf(label) {
  const words = known.get(label) ?? placed(label) ?? spread(label);
  known.set(label, words);
  return words;
}

/** Returns the timed words at their places; null if there are none, or if they are not those of the text. */
function placed(/** @type {Label} */ { text, words }) {
  if (!words?.length) return null;
  /** @type {Placed[]} */
  const found = [];
  let at = 0;
  for (const word of words) {
    const from = text.indexOf(word.text, at);
    if (from < 0) return null;
    at = from + word.text.length;
    found.push({ start: word.start, end: word.end, from, to: at });
  }
  return found;
}

function spread(/** @type {Label} */ { start, end, text }) {
  const parts = split(text), whole = parts.reduce((sum, { from, to }) => sum + to - from, 0);
  let before = 0;
  return parts.map(({ from, to }) => {
    const at = (/** @type {number} */ length) => start + (end - start) * length / whole;
    const word = { start: at(before), end: at(before + to - from), from, to };
    before += to - from;
    return word;
  });
}

/** Divides a text at its spaces and, in scripts without them, where the browser sees words. */
function split(/** @type {string} */ text) {
  const parts = [];
  for (const { 0: token, index = 0 } of text.matchAll(/\S+/gu)) {
    if (!segmenter || !unspaced.test(token)) parts.push({ from: index, to: index + token.length });
    else {
      for (const { segment, index: at, isWordLike } of segmenter.segment(token)) {
        // A comma belongs to the word before it.
        if (isWordLike || at === 0) parts.push({ from: index + at, to: index + at + segment.length });
        else parts[parts.length - 1].to += segment.length;
      }
    }
  }
  return parts;
}

/**
 * Returns the number of words that have begun at an instant.
 * @param {Placed[]} words
 * @param {number} seconds
 */
export function begun(words, seconds) {
  let low = 0, high = words.length;
  while (low < high) {
    const middle = low + high >> 1;
    if (words[middle].start <= seconds) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Whether the first letter of a text is of a script that runs from right to left. */
export const isRightToLeft = (/** @type {string} */ text) => (
  /^\P{L}*[\p{Script=Arabic}\p{Script=Hebrew}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}]/u.test(text));

/**
 * Returns a label with other times; its words stay within it.
 * @param {Label} label
 * @param {number} start
 * @param {number} end
 * @returns {Label}
 */
export function moved(label, start, end) {
  const within = (/** @type {number} */ seconds) => Math.min(end, Math.max(start, seconds));
  const words = label.words?.map(word => ({ ...word, start: within(word.start), end: within(word.end) }));
  return { ...label, start, end, ...words && { words } };
}

/**
 * Returns a label with another text. Its words keep their times if they are as many as before; otherwise they have none.
 * @param {Label} label
 * @param {string} text
 * @returns {Label}
 */
export function retyped(label, text) {
  const { words, ...rest } = label, parts = split(text);
  if (words?.length !== parts.length) return { ...rest, text };
  return { ...rest, text, words: words.map((word, k) => ({ ...word, text: text.slice(parts[k].from, parts[k].to) })) };
}

/**
 * Returns a label as the service keeps it: times in whole microseconds, lines without blanks at their ends.
 * @param {Label} label
 * @returns {Label}
 */
export function normal({ start, end, text, speaker, words }) {
  const round = (/** @type {number} */ seconds) => Math.round(seconds * 1e6) / 1e6;
  const lines = text.split("\n").map(line => line.trim()).filter(Boolean);
  return {
    start: round(start), end: round(end), text: lines.join("\n"), ...speaker && { speaker },
    ...words?.length && { words: words.map(word => ({ start: round(word.start), end: round(word.end), text: word.text })) },
  };
}

/**
 * Whether two labels are the same in everything.
 * @param {Label} a
 * @param {Label} b
 */
export const isSame = (a, b) => a === b || a.start === b.start && a.end === b.end && JSON.stringify(plain(a)) === JSON.stringify(plain(b));

/** The members of a label in the order of the API. */
function plain(/** @type {Label} */ { start, end, text, speaker, words }) {
  return [start, end, text, speaker, words?.map(word => [word.start, word.end, word.text])];
}
