// @ts-check
// Makes elements of the Markdown that descriptions and guides are written in: headings, paragraphs, lists, tables, fenced
// code, and inline code, strong text and links. Text never becomes markup.

/**
 * @param {string} name
 * @param {Record<string, string>} [fields] attributes
 * @param {(Node | string)[]} content
 */
export function make(name, fields = {}, ...content) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(fields)) made.setAttribute(key, value);
  made.append(...content);
  return made;
}

/** The fragment of a heading, as forges make it. */
export const slug = (/** @type {string} */ text) => text.toLowerCase().replace(/[^\p{L}\p{N} _-]/gu, "").replaceAll(" ", "-");

const inlines = /`([^`]+)`|\*\*([^*]+)\*\*|!?\[((?:[^\]\\]|\\.)*)\]\(([^)\s]+)\)|<(https?:[^>\s]+)>/g;

/**
 * @param {string} text
 * @param {(target: string) => string | null} link makes an address of a link's target, or null for none
 * @returns {(Node | string)[]}
 */
export function inline(text, link) {
  const made = [];
  let at = 0;
  for (const match of text.matchAll(inlines)) {
    made.push(text.slice(at, match.index).replace(/\\([\\`*_{}[\]<>()#+.!|-])/g, "$1"));
    at = match.index + match[0].length;
    const [all, code, strong, label, target, address] = match;
    if (code !== undefined) made.push(make("code", {}, code));
    else if (strong !== undefined) made.push(make("strong", {}, ...inline(strong, link)));
    else if (all.startsWith("!")) made.push(label);
    else {
      const href = link(address ?? target), content = address ? [address] : inline(label, link);
      made.push(...href === null ? content : [make("a", { href }, ...content)]);
    }
  }
  made.push(text.slice(at).replace(/\\([\\`*_{}[\]<>()#+.!|-])/g, "$1"));
  return made;
}

/**
 * @param {string} source
 * @param {(target: string) => string | null} link
 * @returns {HTMLElement[]}
 */
export function markdown(source, link = target => /^https?:/.test(target) ? target : null) {
  const lines = source.replace(/<!--(?:.|\n)*?-->\n?/g, "").split("\n"), made = [];
  const cells = (/** @type {string} */ line) => line.replace(/^\||\|\s*$/g, "").split(/(?<!\\)\|/).map(cell => cell.trim());
  for (let at = 0; at < lines.length;) {
    const line = lines[at], fence = /^ *```/.exec(line), heading = /^(#{1,4}) (.*)/.exec(line), item = /^( *)(?:[-*]|(\d+)\.) +/.exec(line);
    if (!line.trim()) at++;
    else if (fence) {
      const code = [];
      for (at++; at < lines.length && !/^ *```/.test(lines[at]); at++) code.push(lines[at]);
      at++;
      made.push(make("pre", { tabindex: "0" }, make("code", {}, code.join("\n"))));
    } else if (heading) {
      made.push(make(`h${heading[1].length}`, { id: slug(heading[2]) }, ...inline(heading[2], link)));
      at++;
    } else if (line.startsWith("|")) {
      const rows = [];
      for (; lines[at]?.startsWith("|"); at++) rows.push(cells(lines[at]));
      const row = (/** @type {string} */ name) => (/** @type {string[]} */ texts) => make("tr", {}, ...texts.map(text => make(name, {}, ...inline(text, link))));
      const body = /^[-: |]+$/.test((rows[1] ?? []).join("")) ? rows.slice(2) : rows.slice(1);
      made.push(make("div", { class: "table", tabindex: "0" }, make("table", {}, make("thead", {}, row("th")(rows[0])), make("tbody", {}, ...body.map(row("td"))))));
    } else if (item) {
      const list = make(item[2] ? "ol" : "ul"), indent = item[0].length;
      while (at < lines.length && /^ *(?:[-*]|\d+\.) +/.test(lines[at]) && (/** @type {RegExpExecArray} */ (/^ */.exec(lines[at])))[0].length === item[1].length) {
        const own = [lines[at++].replace(/^ *(?:[-*]|\d+\.) +/, "")];
        for (; at < lines.length && (/^ +\S/.test(lines[at]) && lines[at].search(/\S/) > item[1].length || !lines[at].trim() && /^ {2,}\S/.test(lines[at + 1] ?? "") && lines[at + 1].search(/\S/) >= indent); at++) own.push(lines[at].slice(Math.min(indent, Math.max(0, lines[at].search(/\S/)))));
        list.append(make("li", {}, ...own.length === 1 ? inline(own[0], link) : markdown(own.join("\n"), link)));
      }
      made.push(list);
    } else {
      const text = [];
      for (; lines[at]?.trim() && !/^( *```|#{1,4} |\|)/.test(lines[at]) && !(text.length && /^ *(?:[-*]|\d+\.) +/.test(lines[at])); at++) text.push(lines[at].trim().replace(/^> ?/, ""));
      made.push(make("p", {}, ...inline(text.join(" "), link)));
    }
  }
  return made;
}
