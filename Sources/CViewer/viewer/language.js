// @ts-check
// The language of the page: the browser's first one that the page has texts for. Numbers are written as in that language
// and region, but always with the digits 0 to 9, which time fields accept and file names contain.

/** The languages of the texts, the reference first. */
export const languages = /** @type {const} */ (["en", "de", "es", "fr", "ja", "ar"]);
/** @typedef {typeof languages[number]} Language */

/**
 * Returns the first wanted language that the page has, with its region.
 * @param {readonly string[]} wanted language tags (BCP 47), the preferred ones first
 * @returns {{ language: Language, locale: string }} `locale` names the way to write numbers, too (BCP 47, extension U)
 */
export function choose(wanted) {
  for (const tag of wanted) {
    const language = languages.find(known => known === tag.split("-")[0].toLowerCase());
    try {
      if (language) return { language, locale: new Intl.Locale(tag, { numberingSystem: "latn" }).toString() };
    } catch { /* A tag that isn't one. */ }
  }
  return { language: languages[0], locale: languages[0] };
}

export const { language, locale } = choose(navigator.languages ?? []);
/** @type {"ltr" | "rtl"} */
export const direction = language === "ar" ? "rtl" : "ltr";

/** @type {Intl.NumberFormat[]} */
const formats = [];
/**
 * Writes a number.
 * @param {number} value
 * @param {number} [digits] decimals
 */
export function number(value, digits = 0) {
  formats[digits] ??= new Intl.NumberFormat(locale, { minimumFractionDigits: digits, maximumFractionDigits: digits });
  return formats[digits].format(value).replace("-", "−");
}

const percents = new Intl.NumberFormat(locale, { style: "percent", maximumFractionDigits: 0 });
/**
 * Writes a share in percent, rounded down.
 * @param {number} share 0 … 1
 */
export const percent = share => percents.format(Math.floor(share * 100) / 100);

const rules = new Intl.PluralRules(locale);
/**
 * Writes a number of things.
 * @param {number} value
 * @param {{ [category in Intl.LDMLPluralRule]?: string } & { other: string }} forms by plural category (CLDR), with # for the number
 */
export const plural = (value, forms) => (forms[rules.select(value)] ?? forms.other).replace("#", number(value));

/** The character between seconds and their decimals. */
export const decimalMark = number(0.5, 1)[1];

const clocks = new Intl.DateTimeFormat(locale, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
/**
 * Writes the time of day.
 * @param {string} moment RFC 3339
 */
export const timeOfDay = moment => clocks.format(new Date(moment));

const days = new Intl.DateTimeFormat(locale, { day: "numeric", month: "short" });
const olderDays = new Intl.DateTimeFormat(locale, { day: "numeric", month: "short", year: "numeric" });
/**
 * Writes the day, with the year unless it is this one.
 * @param {string} moment RFC 3339
 */
export const day = moment => (new Date(moment).getFullYear() === new Date().getFullYear() ? days : olderDays).format(new Date(moment));

/**
 * Writes a size in the unit that fits.
 * @param {number} size in bytes
 */
export function bytes(size) {
  const power = Math.min(3, Math.max(1, Math.floor(Math.log10(Math.max(1, size)) / 3))), value = size / 1000 ** power;
  return leftToRight(`${number(value, value < 10 ? 1 : 0)}\u00a0${["", "kB", "MB", "GB"][power]}`);
}

/**
 * Writes the parts that aren't empty, one after another.
 * @param {(string | false)[]} parts
 */
export const listed = parts => parts.filter(Boolean).join({ ja: "、", ar: "، " }[String(language)] ?? ", ");

/**
 * Keeps text that is written from left to right, such as a number with its unit, in one piece within text in the other
 * direction (UAX #9, isolates).
 * @param {string} text
 */
export const leftToRight = text => (direction === "rtl" ? `\u2066${text}\u2069` : text);

/** Letters of the other direction, in which the names of recordings may be written. */
const foreign = direction === "rtl" ? /\p{L}/u : /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]/;
/**
 * Keeps a text that is put into another one, such as a name, in one piece whatever its direction (UAX #9, isolates).
 * @template Value
 * @param {Value} value
 */
export const isolated = value => (typeof value === "string" && foreign.test(value) ? `\u2068${value}\u2069` : value);

/**
 * Marks a sentence that begins with an isolated name as one of the page's language, because `dir="auto"` skips isolated
 * text when it looks for a direction (UAX #9, P2).
 * @template Value
 * @param {Value} sentence
 */
export const directed = sentence => (
  direction === "rtl" && typeof sentence === "string" && sentence.startsWith("\u2068") ? `\u200f${sentence}` : sentence);
