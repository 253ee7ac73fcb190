// @ts-check
import { decimalMark } from "./language.js";

// Seconds as people write them: 7.25, 1:07.25, 2:03:04.5, with the decimal mark of the page's language.

/**
 * @param {number} seconds
 * @param {number} [digits] decimals of the second
 */
export function formatTime(seconds, digits = 2) {
  const unit = 10 ** digits;
  const ticks = Math.max(0, Math.round(seconds * unit));
  const whole = Math.floor(ticks / unit);
  const hours = Math.floor(whole / 3600);
  const minutes = Math.floor((whole % 3600) / 60);
  const two = (/** @type {number} */ value) => String(value).padStart(2, "0");
  const clock = hours ? `${hours}:${two(minutes)}:${two(whole % 60)}` : `${minutes}:${two(whole % 60)}`;
  return digits ? `${clock}${decimalMark}${String(ticks % unit).padStart(digits, "0")}` : clock;
}

/**
 * Parses a typed time into seconds; NaN if it is invalid.
 * @param {string} text
 */
export function parseTime(text) {
  const parts = text.trim().replace(",", ".").split(":");
  if (parts.length > 3 || parts.some(part => !/^\d+(\.\d*)?$|^\.\d+$/.test(part))) return NaN;
  return parts.reduce((sum, part) => sum * 60 + Number(part), 0);
}

const longSteps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400];

/**
 * Returns the distance between the ruler's labels, and the number of parts of each.
 * @param {number} secondsPerPixel
 * @param {number} room the least pixels between two labels
 * @returns {{ step: number, parts: number, digits: number }}
 */
export function rulerStep(secondsPerPixel, room) {
  const least = secondsPerPixel * room;
  if (least > 0.5) {
    const step = longSteps.find(candidate => candidate >= least) ?? Math.ceil(least / 86400) * 86400;
    return { step, parts: step % 60 === 0 || step === 2 ? 4 : step === 15 || step === 30 ? 3 : 5, digits: 0 };
  }
  const power = Math.floor(Math.log10(least));
  const factor = [1, 2, 5, 10].find(candidate => candidate * 10 ** power >= least) ?? 10;
  const step = factor * 10 ** power;
  return { step, parts: factor === 2 ? 4 : 5, digits: Math.max(0, -power - (factor === 10 ? 1 : 0)) };
}

/**
 * Returns the distance between the labels of a ruler that counts samples, and the number of parts of each.
 * @param {number} samplesPerPixel
 * @param {number} room
 */
export function sampleStep(samplesPerPixel, room) {
  const least = Math.max(1, samplesPerPixel * room), power = 10 ** Math.floor(Math.log10(least));
  const factor = [1, 2, 5, 10].find(candidate => candidate * power >= least) ?? 10, step = factor * power;
  return { step, parts: step === 1 ? 1 : factor === 2 ? 4 : 5, digits: 0 };
}
