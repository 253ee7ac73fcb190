// @ts-check
// What the element looks like. Every color is a custom property, and what a page may style is a part.

/** Colors in light and dark. */
const colors = {
  background: ["#ffffff", "#101215"], peak: ["#8f949d", "#676e79"], rms: ["#5f656f", "#9aa2ad"],
  "overlay-peak": ["#2a9289", "#218f87"], "overlay-rms": ["#0b7771", "#6fe3d8"], line: ["#d8d5cf", "#30353c"],
  ink: ["#1c1f24", "#e9e7e3"], quiet: ["#5d646e", "#a0a7b1"], selection: ["#2a6fdb", "#6ea8ff"], playhead: ["#b3261e", "#ff8a80"],
  label: ["#dfe6f2", "#252d3a"], accent: ["#0b6f6b", "#55cfc5"], "on-accent": ["#ffffff", "#08211f"],
};
/** Colors where the system chooses them. */
const forced = {
  background: "Canvas", peak: "GrayText", rms: "CanvasText", "overlay-peak": "LinkText", "overlay-rms": "LinkText", line: "GrayText",
  ink: "CanvasText", quiet: "CanvasText", selection: "Highlight", playhead: "Highlight", label: "Canvas", accent: "ButtonText", "on-accent": "ButtonFace",
};

/** @type {(choose: (name: string) => string) => string} */
const each = choose => Object.keys(colors).map(name => `--_${name}: var(--stillwave-${name}, ${choose(name)});`).join("");
const light = `color-scheme: light; ${each(name => colors[name][0])}`, dark = `color-scheme: dark; ${each(name => colors[name][1])}`;

/** The colors that are read for drawing, from hidden elements, because a custom property isn't a color until it is used. */
export const drawn = ["peak", "rms", "overlay-peak", "overlay-rms", "line", "ink", "quiet"];

export const css = `
:host { ${light} display: block; position: relative; min-width: 0; container-type: inline-size; border-radius: .5rem; overflow: hidden;
  font: 400 .8125rem/1.4 var(--stillwave-font, system-ui, sans-serif); color: var(--_ink); background: var(--_background); }
:host([theme=dark]) { ${dark} }
@media (prefers-color-scheme: dark) { :host(:not([theme=light])) { ${dark} } }
@media (forced-colors: active) { :host(:not(#_)) { ${each(name => forced[name])} } }
:host([hidden]), [hidden] { display: none !important; }
* { box-sizing: border-box; }
.base { display: flex; flex-direction: column; height: 100%; }
canvas { display: block; width: 100%; height: 100%; }
.ruler { flex: none; height: 1.25rem; border-bottom: 1px solid var(--_line); pointer-events: none; }
.wave { position: relative; flex: 1 0 var(--stillwave-height, 8rem); min-height: 0; cursor: text; touch-action: pan-y; user-select: none; -webkit-user-select: none; outline: none; overflow: hidden; }
.wave:focus-visible::after { content: ""; position: absolute; inset: 0; border: 2px solid var(--_selection); border-radius: .25rem; pointer-events: none; }
.fill { position: absolute; inset: 0; }
.spectrogram { position: relative; flex: none; height: var(--stillwave-spectrogram-height, 8rem); border-top: 1px solid var(--_line); overflow: hidden; background: #000; }
.selection { position: absolute; inset-block: 0; left: 0; background: color-mix(in srgb, var(--_selection) 22%, transparent); border-inline: 2px solid var(--_selection); pointer-events: none; }
.playhead { position: absolute; inset-block: 0; left: -1px; width: 2px; background: var(--_playhead); pointer-events: none; }
.labels { position: relative; flex: none; height: 1.75rem; border-top: 1px solid var(--_line); overflow: hidden; }
.label { position: absolute; inset-block: 2px; padding: 0 .25rem; overflow: hidden; white-space: nowrap; text-overflow: ellipsis; line-height: 1.5rem; border-inline-start: 2px solid var(--_accent);
  background: var(--_label); border-radius: .15rem; min-width: 3px; color: inherit; }
.scroller { position: relative; flex: none; height: .75rem; border-top: 1px solid var(--_line); cursor: grab; touch-action: none; }
.thumb { position: absolute; inset-block: 2px; min-width: .75rem; background: var(--_quiet); border-radius: .25rem; }
.controls { display: flex; align-items: center; gap: .25rem; padding: .375rem; border-top: 1px solid var(--_line); }
.time { flex: 1; padding-inline: .375rem; font-variant-numeric: tabular-nums; white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }
button { display: grid; place-items: center; flex: none; width: 2.25rem; height: 2.25rem; padding: 0; font: inherit; color: inherit; background: none; border: 1px solid transparent; border-radius: .4rem; cursor: pointer; }
button:hover { border-color: var(--_line); }
button:focus-visible { outline: 2px solid var(--_selection); outline-offset: -1px; }
button:disabled { opacity: .4; cursor: default; }
.play { background: var(--_accent); color: var(--_on-accent); border-radius: 50%; }
svg { width: 1.25rem; height: 1.25rem; fill: none; stroke: currentColor; stroke-width: 1.75; stroke-linecap: round; stroke-linejoin: round; }
.solid { fill: currentColor; stroke: none; }
.message { position: absolute; inset-inline: .5rem; top: 1.75rem; margin: 0; padding: .375rem .5rem; background: var(--_background); border: 1px solid var(--_playhead); border-radius: .25rem; }
@media (pointer: coarse) { button { width: 2.75rem; height: 2.75rem; } .scroller { height: 1.5rem; } }
@container (max-width: 14rem) { .zoom { display: none; } }
`;

/**
 * Makes an element; no text becomes markup, which pages may forbid (Trusted Types).
 * @param {string} name
 * @param {Record<string, string>} fields attributes
 * @param {(Node | string)[]} content
 */
export function make(name, fields = {}, ...content) {
  const isDrawing = name === "svg" || name === "path";
  const made = isDrawing ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(fields)) made.setAttribute(key, value);
  made.append(...content);
  return made;
}

export const paths = {
  play: "M6 3.5v13l11-6.5z", pause: "M5 4h3.5v12H5zM11.5 4H15v12h-3.5z",
  out: "M8.5 3a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11zM12.5 12.5 17 17M6 8.5h5",
  in: "M8.5 3a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11zM12.5 12.5 17 17M6 8.5h5M8.5 6v5",
  all: "M3 4v12M17 4v12M6 10h8M8 7.5 5.5 10 8 12.5M12 7.5l2.5 2.5-2.5 2.5",
};

/** @param {"play" | "out" | "in" | "all"} name */
function button(name) {
  const path = make("path", { d: paths[name], class: name === "play" ? "solid" : "" });
  return make("button", { type: "button", "data-do": name, part: `button ${name}`, class: name === "play" ? name : "zoom" },
    make("svg", { viewBox: "0 0 20 20", "aria-hidden": "true" }, path));
}

/** @param {string} name */
const box = (name, fields = {}, ...content) => make("div", { class: name, part: name === "wave" ? "waveform" : name, ...fields }, ...content);

/** Everything in the element. */
export const content = () => box("base", {},
  box("ruler", {}, make("canvas")),
  box("wave", { role: "slider", tabindex: "0", "aria-valuemin": "0", "aria-valuemax": "0", "aria-valuenow": "0" },
    make("div", { class: "fill" }, make("canvas")), box("selection", { hidden: "" }), box("playhead")),
  box("spectrogram", { hidden: "" }),
  box("labels", { role: "list", hidden: "" }),
  box("scroller", { "aria-hidden": "true", hidden: "" }, box("thumb")),
  box("controls", { hidden: "" }, button("play"), make("span", { class: "time", part: "time" }), button("out"), button("in"), button("all")),
  make("p", { class: "message", part: "message", role: "alert", hidden: "" }),
  ...drawn.map(name => make("i", { "data-color": name, hidden: "" })));

/** Colors of the hidden elements, by rules, because a strict policy forbids attributes with styles. */
export const colorRules = drawn.map(name => `[data-color=${name}] { color: var(--_${name}); }`).join("");
