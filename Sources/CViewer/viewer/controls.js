// @ts-check
import { voices } from "./comparison.js";
import { Surface } from "./drawing.js";
import { listenToKeys, listenToPointers, setGain } from "./gestures.js";
import { percent } from "./language.js";
import { recall, remember } from "./memory.js";
import { announce, tell } from "./messages.js";
import { afterCalm, copy, download, find, label, part, rove } from "./page.js";
import { recordingPath } from "./service.js";
import { layerName } from "./session.js";
import { texts } from "./texts.js";
import { formatTime, parseTime } from "./time.js";

/** @typedef {import("./view.js").View} View */
/** @typedef {import("./stage.js").Stage} Stage */
/** @typedef {import("./session.js").Session} Session */
/** @typedef {import("./player.js").Player} Player */
/** @typedef {import("./undo.js").Undo} Undo */

const speeds = [0.5, 0.75, 1, 1.25, 1.5, 2];

/**
 * The controls around the waveform.
 * @param {{ view: View, stage: Stage, session: Session, player: Player, undo: Undo, keys: Record<string, (event: KeyboardEvent) => void> }} parts `keys`: what more keys do
 */
export function connectControls({ view, stage, session, player, undo, keys }) {
  listenToPointers(stage, view, seconds => player.seek(seconds));
  const actions = connectButtons(view, stage, session, player, keys);
  listenToKeys({ ...actions, "Ctrl+z": () => undo.undo(), "Shift+Ctrl+z": () => undo.redo(), "Ctrl+y": () => undo.redo() });
  for (const toolbar of document.querySelectorAll("[role=toolbar]")) rove(/** @type {HTMLElement} */ (toolbar));
  connectMenu();
  for (const way of /** @type {const} */ (["undo", "redo"])) find(way).onclick = () => undo[way]();
  undo.changed.subscribe(() => {
    find("undo").disabled = !undo.canUndo;
    find("redo").disabled = !undo.canRedo;
  });
  connectTimes(view);
  connectClock(view, stage, player);
  connectPlayer(view, player, session);
  connectLayers(session, player);
  const describe = afterCalm(300, () => stage.describe());
  view.moved.subscribe(describe);
  view.selected.subscribe(afterCalm(400, () => {
    if (view.selection) announce(texts.selectionSaid(formatTime(view.selection.start), formatTime(view.selection.end)));
  }));
}

/** @returns {Record<string, (event: KeyboardEvent) => void>} what the keys do */
function connectButtons(/** @type {View} */ view, /** @type {Stage} */ stage, /** @type {Session} */ session, /** @type {Player} */ player, /** @type {Record<string, (event: KeyboardEvent) => void>} */ more) {
  const zoomSelection = () => { if (view.selection) view.show(margin(view.selection)); };
  const takeNoise = () => {
    if (!view.selection) return;
    view.markNoise(view.selection);
    view.select(null);
  };
  const preview = () => player.preview();
  const loop = () => player.setLoop(!player.isLooping);
  const follow = () => {
    player.isFollowing = !player.isFollowing;
    player.changed.emit();
  };
  const pan = (/** @type {number} */ share) => view.pan((view.target.end - view.target.start) * share);
  const grow = (/** @type {number} */ share) => {
    const { start, end } = view.selection ?? { start: view.playhead, end: view.playhead };
    view.select({ start, end: Math.max(start, end + (view.target.end - view.target.start) * share) });
  };
  const end = (/** @type {"start" | "end"} */ side) => {
    const span = view.target.end - view.target.start;
    view.show(side === "start" ? { start: 0, end: span } : { start: view.duration - span, end: view.duration });
    player.seek(side === "start" ? 0 : view.duration);
  };
  // What is shown whole can't be scrolled: then arrows move the playhead.
  const go = (/** @type {number} */ side) => {
    if (view.target.end - view.target.start < view.duration) pan(0.15 * side);
    else nudge(0.01 * side);
  };
  const nudge = (/** @type {number} */ share) => player.seek(view.playhead + (view.target.end - view.target.start) * share);
  const keys = find("keys");
  /** @type {Record<string, () => void>} */
  const buttons = {
    "zoom-in": () => view.zoom(0.5), "zoom-out": () => view.zoom(2), "zoom-all": () => view.showAll(),
    "zoom-selection": zoomSelection, taller: () => setGain(view, view.gain * 1.5), flatter: () => setGain(view, view.gain / 1.5),
    play: () => player.toggle(), loop, follow, preview,
    "selection-play": () => player.play(), "selection-noise": takeNoise, "selection-zoom": zoomSelection,
    "selection-clear": () => view.select(null), "clear-selection": () => view.select(null),
    "show-keys": () => keys.showModal(), "close-keys": () => keys.close(),
    height: () => {
      if (view.isFitted) setGain(view, 1);
      else {
        view.isFitted = true;
        stage.redraw();
      }
    },
    "ruler-unit": () => {
      stage.toggleRuler();
      showRuler();
    },
    "scale-unit": () => find("scale-unit").setAttribute("aria-pressed", String(stage.toggleScale())),
    channels: () => session.setChannels(session.channels === "mix" ? "split" : "mix"),
  };
  const showRuler = () => find("ruler-unit").setAttribute("aria-pressed", String(stage.countsSamples));
  showRuler();
  for (const [id, action] of Object.entries(buttons)) find(id).addEventListener("click", action);
  // After a click on a control, keys go to the waveform again, unless the control has moved the focus itself: to a field
  // that it has opened, or into a dialog.
  for (const id of ["document", "cleaning", "actions", "transport"]) {
    find(id).addEventListener("click", (/** @type {MouseEvent} */ event) => {
      const pressed = /** @type {Element} */ (event.target).closest("button, [type=radio], [type=checkbox]"), focused = document.activeElement;
      const isInSheet = document.body.classList.contains("settings-shown"), hasStayed = focused === pressed || focused === document.body;
      if (event.detail && pressed && hasStayed && !isInSheet) stage.parts.wave.focus({ preventScroll: true });
    });
  }
  // So do the keys of an element that is hidden or disabled while it has the focus, which would be lost otherwise.
  /** @type {Element | null} */
  let focused = null;
  addEventListener("focusin", event => { focused = /** @type {Element} */ (event.target); });
  new MutationObserver(() => {
    if (focused?.closest("[hidden], :disabled")) stage.parts.wave.focus({ preventScroll: true });
  }).observe(document.body, { subtree: true, attributeFilter: ["hidden", "disabled"] });
  for (const [key, meaning] of texts.keyList) {
    const [term, description] = [document.createElement("dt"), document.createElement("dd")];
    [term.textContent, description.textContent] = [key, meaning];
    find("key-list").append(term, description);
  }
  const previewTexts = { view: texts.previewView, selection: texts.previewSelection, around: texts.previewAround };
  view.moved.subscribe(() => {
    const wanted = previewTexts[player.previewed.kind], previewed = find("preview-long");
    if (previewed.textContent !== wanted) previewed.textContent = find("preview").title = wanted;
    const text = texts.gain(Math.round(20 * Math.log10(view.gain)));
    if (find("height").textContent !== text) find("height").textContent = text;
  });
  session.changed.subscribe(() => {
    const channels = session.original?.recording.format.channels ?? 1;
    find("channels").hidden = channels < 2;
    find("channels").setAttribute("aria-pressed", String(session.channels === "split"));
  });
  const isOpen = (/** @type {(event: KeyboardEvent) => void} */ action) => (/** @type {KeyboardEvent} */ event) => { if (session.original) action(event); };
  return Object.fromEntries(Object.entries({
    " ": () => player.toggle(), "+": () => view.zoom(0.6), "=": () => view.zoom(0.6), "-": () => view.zoom(1 / 0.6),
    "_": () => view.zoom(1 / 0.6), ArrowLeft: () => go(-1), ArrowRight: () => go(1), ArrowUp: () => view.zoom(0.6),
    ArrowDown: () => view.zoom(1 / 0.6), PageUp: () => pan(-0.9), PageDown: () => pan(0.9),
    "Shift+ArrowLeft": () => grow(-0.02), "Shift+ArrowRight": () => grow(0.02), Home: () => end("start"), End: () => end("end"),
    ",": () => nudge(-0.01), ".": () => nudge(0.01), "Shift+,": () => nudge(-0.1), "Shift+.": () => nudge(0.1),
    "<": () => nudge(-0.1), ">": () => nudge(0.1), z: zoomSelection, 0: () => view.showAll(), "]": buttons.taller, "[": buttons.flatter, n: takeNoise, p: preview, l: loop, f: follow,
    Escape: () => view.select(null), "?": () => keys.showModal(), "Shift+?": () => keys.showModal(),
    1: () => player.setVoice("original"), 2: () => player.hearCleaned(), 3: () => player.setVoice("residue"),
    ...more,
  }).map(([key, action]) => [key, isOpen(action)]));
}

/**
 * A window with some room on both sides.
 * @param {import("./view.js").Span} span
 */
function margin({ start, end }) {
  const room = (end - start) * 0.08;
  return { start: start - room, end: end + room };
}

/** The menu of rarely needed commands appears below its button. */
function connectMenu() {
  const menu = find("display"), button = find("display-menu");
  menu.addEventListener("toggle", () => {
    const { bottom, right } = button.getBoundingClientRect();
    menu.style.top = `${bottom + 4}px`;
    menu.style.left = `${Math.max(4, Math.min(right, innerWidth - 4) - menu.offsetWidth)}px`;
  });
}

/** The time fields of the selection. */
function connectTimes(/** @type {View} */ view) {
  const [from, to, length] = ["select-from", "select-to", "select-length"].map(find);
  const write = () => {
    const { selection } = view;
    for (const [field, value] of /** @type {[HTMLInputElement, number | undefined][]} */ ([
      [from, selection?.start], [to, selection?.end], [length, selection ? selection.end - selection.start : undefined],
    ])) {
      if (document.activeElement === field && field.dataset.typed) continue;
      field.value = value === undefined ? "" : formatTime(value, 3);
    }
    find("clear-selection").disabled = find("zoom-selection").disabled = !selection;
    for (const [handle, value] of [[find("handle-start"), selection?.start], [find("handle-end"), selection?.end]]) {
      handle.setAttribute("aria-valuemax", view.duration.toFixed(3));
      handle.setAttribute("aria-valuenow", (value ?? 0).toFixed(3));
      handle.setAttribute("aria-valuetext", formatTime(value ?? 0, 3));
    }
  };
  const read = (/** @type {HTMLInputElement} */ field) => {
    delete field.dataset.typed;
    const value = parseTime(field.value), start = parseTime(from.value), end = parseTime(to.value);
    if (field.value === "" && field !== length) view.select(null);
    else if (Number.isNaN(value)) tell(texts.badTime, { isError: true });
    else if (field === length) view.select({ start: start || 0, end: (start || 0) + value });
    else if (field === from) view.select({ start, end: end > start ? end : start + 1 });
    else view.select({ start: start < end ? start : Math.max(0, end - 1), end });
    write();
  };
  for (const field of [from, to, length]) {
    field.addEventListener("input", () => { field.dataset.typed = "yes"; });
    field.addEventListener("change", () => read(field));
    field.addEventListener("blur", write);
  }
  view.selected.subscribe(write);
  write();
}

/**
 * The time of the playhead. It is painted: the page would lay out a text with every frame. The element for screen readers
 * isn't displayed while something plays.
 */
function connectClock(/** @type {View} */ view, /** @type {Stage} */ stage, /** @type {Player} */ player) {
  const element = find("playhead-time");
  let shown = "", font = "";
  const surface = new Surface(find("playhead-clock"), () => {
    const { fontWeight, fontSize, fontFamily } = getComputedStyle(surface.canvas);
    font = `${fontWeight} ${fontSize} ${fontFamily}`;
    shown = "";
    write();
  });
  const write = () => {
    const text = formatTime(view.playhead, 2), { pen, ratio, height } = surface, state = text + stage.palette.ink;
    if (state === shown) return;
    shown = state;
    element.textContent = text;
    surface.clear();
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.font = font;
    pen.textBaseline = "middle";
    pen.direction = "ltr";
    pen.fillStyle = stage.palette.ink;
    // Digits have the same width, or else the others would move.
    let x = 0;
    for (const sign of text) {
      pen.fillText(sign, x, height / 2);
      x += pen.measureText(/\d/.test(sign) ? "0" : sign).width;
    }
  };
  view.moved.subscribe(write);
  player.changed.subscribe(() => element.classList.toggle("running", player.isPlaying));
}

function connectPlayer(/** @type {View} */ view, /** @type {Player} */ player, /** @type {Session} */ session) {
  const play = find("play"), icon = part(play, "icon");
  for (const voice of voices) {
    find(`voice-${voice}`).addEventListener("change", () => player.setVoice(voice));
  }
  player.changed.subscribe(() => {
    const isActive = player.isPlaying || player.isLoading;
    icon.setAttribute("href", isActive ? "#i-pause" : "#i-play");
    label(play, isActive ? texts.pause : texts.play);
    play.classList.toggle("busy", player.isLoading);
    find("loop").setAttribute("aria-pressed", String(player.isLooping));
    find("follow").setAttribute("aria-pressed", String(player.isFollowing));
    for (const voice of voices) find(`voice-${voice}`).checked = voice === player.voice;
    view.moved.emit();
  });
  session.changed.subscribe(() => {
    const { cleaned, results } = session;
    find("voice-cleaned").nextElementSibling.textContent = cleaned && results.length > 1 ? layerName(cleaned) : texts.cleaned;
  });
  const speed = find("speed");
  speed.replaceChildren(...speeds.map(value => new Option(texts.times(value), String(value), false, value === 1)));
  speed.onchange = () => player.setSpeed(Number(speed.value));
  const volume = find("volume");
  volume.value = recall("volume") ?? 100;
  volume.oninput = () => {
    volume.setAttribute("aria-valuetext", percent(volume.value / 100));
    // Loudness follows the square better than the factor itself.
    player.setVolume((volume.value / 100) ** 2);
    remember("volume", Number(volume.value));
  };
  volume.oninput();
  player.failed.subscribe(error => tell(error.message, { isError: true }));
}

const audioPath = (/** @type {import("./session.js").Layer} */ { recording }) => `${recordingPath(recording.id)}/audio?download=1`;

/** A row for each layer, with buttons to hear, show, solo, download and remove it. */
function connectLayers(/** @type {Session} */ session, /** @type {Player} */ player) {
  const { service } = session;
  const area = find("layers");
  /** @type {Map<import("./session.js").Layer, HTMLElement>} */
  const rows = new Map();
  const update = () => {
    for (const [layer, row] of rows) {
      if (session.layers.includes(layer)) continue;
      row.remove();
      rows.delete(layer);
    }
    for (const layer of session.layers) {
      let row = rows.get(layer);
      if (!row) {
        row = copy("layer-template");
        rows.set(layer, row);
        area.append(row);
        const toggle = (/** @type {"isVisible" | "isSolo"} */ flag) => () => {
          layer[flag] = !layer[flag];
          session.changed.emit();
        };
        part(row, "name").onclick = () => player.hear(layer);
        part(row, "show").onclick = toggle("isVisible");
        part(row, "solo").onclick = toggle("isSolo");
        part(row, "remove").onclick = () => session.remove(layer);
        part(row, "download").onclick = (/** @type {Event} */ event) => {
          // With a key, the address needs a token, which a link that stays would show.
          if (!service.credentials.hasKey && !service.credentials.share) return;
          event.preventDefault();
          download(service, audioPath(layer)).catch(error => session.failed.emit(error));
        };
      }
      const name = layerName(layer), { recording, role } = layer, isHeard = player.voice === role && layer === session[role];
      row.dataset.role = role;
      if (role === "cleaned") row.dataset.color = String(layer.color);
      part(row, "name").textContent = name;
      label(part(row, "name"), texts.hearLayer(recording.name));
      part(row, "name").setAttribute("aria-pressed", String(isHeard));
      label(part(row, "show"), texts.show(name));
      label(part(row, "solo"), texts.solo(name));
      part(row, "show").setAttribute("aria-pressed", String(layer.isVisible));
      part(row, "solo").setAttribute("aria-pressed", String(layer.isSolo));
      const link = part(row, "download");
      link.hidden = recording.sha256 === null;
      link.href = audioPath(layer);
      label(link, texts.download(recording.name));
      label(part(row, "remove"), texts.removeLayer(name));
      part(row, "remove").hidden = role === "original" || recording.sha256 === null;
    }
  };
  session.changed.subscribe(update);
  player.changed.subscribe(update);
}
