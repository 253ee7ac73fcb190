// @ts-check
// Reads the part of YAML 1.2 that openapi.yaml is written in: maps and lists in block and flow style, plain, quoted, literal
// and folded scalars, comments. No anchors, tags or documents.

/**
 * @param {string} text
 * @returns {any}
 */
export function parseYAML(text) { return new Reader(text.split("\n")).block(0); }

class Reader {
  #at = 0;
  /** @param {string[]} lines */
  constructor(lines) { this.lines = lines; }

  /** Goes to the next line with content and returns its indentation; -1 at the end. */
  #next() {
    while (this.#at < this.lines.length && /^\s*(#|$)/.test(this.lines[this.#at])) this.#at++;
    return this.#at < this.lines.length ? this.lines[this.#at].search(/\S/) : -1;
  }

  /**
   * Reads the map, list or scalar whose lines are indented by at least `least` spaces.
   * @param {number} least
   */
  block(least) {
    const indent = this.#next();
    if (indent < least) return null;
    const line = this.lines[this.#at].slice(indent);
    if (/^-(\s|$)/.test(line)) return this.#list(indent);
    return keyOf(line) ? this.#map(indent) : this.#scalar(line, indent, ++this.#at);
  }

  #list(/** @type {number} */ indent) {
    const list = [];
    while (this.#next() === indent && /^-(\s|$)/.test(this.lines[this.#at].slice(indent))) {
      // What follows the dash is a block of its own, indented where it begins.
      this.lines[this.#at] = `${" ".repeat(indent + 1)}${this.lines[this.#at].slice(indent + 1)}`;
      list.push(this.block(indent + 1));
    }
    return list;
  }

  #map(/** @type {number} */ indent) {
    /** @type {Record<string, any>} */
    const map = {};
    while (this.#next() === indent) {
      const found = keyOf(this.lines[this.#at].slice(indent));
      if (!found) break;
      this.#at++;
      const { key, rest } = found;
      // A list may begin in its key's column.
      if (!rest) map[key] = this.#next() === indent && /^-(\s|$)/.test(this.lines[this.#at].slice(indent)) ? this.#list(indent) : this.block(indent + 1);
      else map[key] = this.#scalar(rest, indent + 1, this.#at);
    }
    return map;
  }

  /**
   * @param {string} first the text on the first line
   * @param {number} least the indentation of lines that continue it
   * @param {number} next the number of the line after
   */
  #scalar(first, least, next) {
    this.#at = next;
    const style = /^([|>])([+-]?)\s*(#.*)?$/.exec(first);
    if (style) return this.#text(style[1] === ">", style[2], least);
    // A flow value and a plain scalar may go on; quotes and brackets decide when the first is complete.
    let text = first;
    for (;;) {
      const flow = new Flow(text);
      if (/^["'[{]/.test(text) && !flow.isComplete) {
        if (this.#at >= this.lines.length) break;
        text += " " + this.lines[this.#at++].trim();
        continue;
      }
      if (!/^["'[{]/.test(text) && this.#at < this.lines.length && this.lines[this.#at].search(/\S/) >= least && !/^\s*#/.test(this.lines[this.#at])) {
        text += " " + this.lines[this.#at++].trim();
        continue;
      }
      return /^["'[{]/.test(text) ? flow.value : plain(text.replace(/\s#.*$/, "").trim());
    }
    return null;
  }

  #text(/** @type {boolean} */ isFolded, /** @type {string} */ chomping, /** @type {number} */ least) {
    const taken = [];
    let indent = -1;
    for (; this.#at < this.lines.length; this.#at++) {
      const line = this.lines[this.#at], own = line.search(/\S/);
      if (own >= 0 && indent < 0) indent = own;
      if (own >= 0 && own < Math.max(least, indent)) break;
      taken.push(own < 0 ? "" : line.slice(indent));
    }
    while (taken.length && !taken[taken.length - 1]) taken.pop();
    let text = taken.join("\n");
    // Single line breaks become spaces, except around lines that are indented further.
    if (isFolded) text = text.replace(/([^\n])\n(?=[^\s])/g, "$1 ").replace(/\n(\n+)/g, "$1");
    return chomping === "-" ? text : text + "\n";
  }
}

/**
 * Splits `key: rest`.
 * @param {string} line
 */
function keyOf(line) {
  const match = /^("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^\s"'#[\]{},&*!|>%@`-][^:#]*?|-[^\s:][^:]*?|[^\s:#"'[{]+(?=:(?:\s|$)))\s*:(?:\s+(.*))?$/.exec(line);
  if (!match) return null;
  const rest = (match[2] ?? "").trim();
  return { key: String(/^["']/.test(match[1]) ? new Flow(match[1]).value : match[1]), rest: rest.startsWith("#") ? "" : rest };
}

/** @param {string} text */
function plain(text) {
  if (/^(null|~)?$/.test(text)) return null;
  if (/^(true|false)$/.test(text)) return text === "true";
  return /^[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?$/.test(text) ? Number(text) : text;
}

/** A flow value: quotes, brackets, braces. */
class Flow {
  #at = 0;
  isComplete = true;
  /** @type {any} */
  value;

  /** @param {string} text */
  constructor(text) {
    this.text = text;
    this.value = this.#read("");
  }

  #space() { while (/\s/.test(this.text[this.#at] ?? "x")) this.#at++; }

  /** @returns {any} */
  #read(/** @type {string} */ ends) {
    this.#space();
    const mark = this.text[this.#at];
    if (mark === "{" || mark === "[") return this.#collection(mark === "{");
    if (mark === '"' || mark === "'") return this.#quoted(mark);
    const start = this.#at, isKey = () => this.text[this.#at] === ":" && /^(\s|$)/.test(this.text.slice(this.#at + 1, this.#at + 2));
    while (this.#at < this.text.length && !ends.includes(this.text[this.#at]) && !isKey()) this.#at++;
    return plain(this.text.slice(start, this.#at).trim());
  }

  #quoted(/** @type {string} */ mark) {
    const start = ++this.#at;
    for (; this.#at < this.text.length; this.#at++) {
      if (mark === '"' && this.text[this.#at] === "\\") { this.#at++; continue; }
      if (this.text[this.#at] !== mark) continue;
      if (mark === "'" && this.text[this.#at + 1] === "'") { this.#at++; continue; }
      const inner = this.text.slice(start, this.#at++);
      return mark === "'" ? inner.replaceAll("''", "'") : JSON.parse(`"${inner.replace(/\\x([0-9a-f]{2})/gi, "\\u00$1")}"`);
    }
    this.isComplete = false;
    return "";
  }

  #collection(/** @type {boolean} */ isMap) {
    const close = isMap ? "}" : "]";
    /** @type {any} */
    const made = isMap ? {} : [];
    for (this.#at++; ;) {
      this.#space();
      if (this.#at >= this.text.length) { this.isComplete = false; return made; }
      if (this.text[this.#at] === close) { this.#at++; return made; }
      if (this.text[this.#at] === ",") { this.#at++; continue; }
      const before = this.#at, item = this.#read(`,${close}`);
      this.#space();
      if (this.text[this.#at] === ":") {
        this.#at++;
        const value = this.#read(`,${close}`);
        if (isMap) made[String(item)] = value;
        else made.push({ [String(item)]: value });
      } else if (isMap) made[String(item)] = null;
      else made.push(item);
      if (this.#at === before) { this.isComplete = false; return made; }
    }
  }
}
