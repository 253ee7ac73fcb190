// @ts-check
import { drawRuler, drawWaveforms, Surface, wishes } from "../viewer/drawing.js";
import { TileStore, Waveform } from "../viewer/tiles.js";
import { formatTime } from "../viewer/time.js";
import { View } from "../viewer/view.js";
import { colorRules, content, css, drawn, make, paths } from "./look.js";
import { isAbort, parsePlace, pause, Remote, StillwaveError } from "./remote.js";

// <stillwave-waveform>: a recording's waveform to see, hear, zoom and select in, in any page. It draws with the viewer's
// modules; `deploy/embed` makes one script of them all. See docs/embedding.md for what pages may rely on.

/** @typedef {import("../viewer/view.js").Span} Span */

/** What the element says; a page may replace texts before it makes elements. */
const texts = {
  waveform: "Waveform", play: "Play", pause: "Pause", in: "Zoom in", out: "Zoom out", all: "Show everything", required: "Select a part of the recording.",
  position: (/** @type {string} */ at, /** @type {string} */ all) => `${at} of ${all}`,
  selected: (/** @type {string} */ from, /** @type {string} */ to) => `selected: ${from} to ${to}`,
  unplayable: "This browser can't play the recording.",
};

/** Between two looks at a recording that grows, in milliseconds. */
const growth = 1000;
/** A press that moves less than this many pixels is a click. */
const slack = 4;
const mostLabels = 300;

/** Where the service is by default: where the script came from. */
const origin = new URL(import.meta.url.endsWith("/embed/stillwave.js") ? ".." : ".", import.meta.url).href;

/** @type {CSSStyleSheet | undefined} */
let sheet;
function style() {
  if (!sheet) (sheet = new CSSStyleSheet()).replaceSync(css + colorRules);
  return sheet;
}

// A server that renders pages may import this module, too.
const Base = globalThis.HTMLElement ?? /** @type {typeof HTMLElement} */ (class {});

export class StillwaveWaveform extends Base {
  static formAssociated = true;
  static observedAttributes = ["src", "recording", "token", "start", "end", "overlay", "labels", "spectrogram", "controls", "theme", "disabled", "required", "aria-label"];
  static texts = texts;

  /** @type {StillwaveError | null} why something can't be shown */
  error = null;
  /** @type {any} the recording as the service describes it, once it is known */
  info = null;

  #internals = this.attachInternals();
  #root = this.attachShadow({ mode: "open", delegatesFocus: true });
  #audio = new Audio();
  #view = new View();
  /** @type {Remote | null} */
  #remote = null;
  /** @type {TileStore | null} */
  #store = null;
  /** @type {any[]} the recording and its overlay, in the form that drawing.js takes */
  #layers = [];
  /** @type {{ track: string, from: number, to: number, list: any[] } | null} */
  #labels = null;
  /** @type {import("./spectrogram.js").Spectrogram | null} */
  #spectrogram = null;
  #isFramed = false;
  #lastFrame = 0;
  #isLoading = false;
  #isStale = true;
  #shownTarget = this.#view.target;
  #stopAt = Infinity;
  #pendingTime = NaN;
  /** @type {Promise<void> | null} resolves when it plays what the service converts, because the browser can't play the file */
  #conversion = null;
  /** @type {() => void} */
  #forget = () => {};

  constructor() {
    super();
    this.#root.adoptedStyleSheets = [style()];
    this.#root.append(content());
    this.#audio.preload = "none";
    const resized = () => this.#wake();
    this.surface = new Surface(this.#find(".fill canvas"), resized);
    this.ruler = new Surface(this.#find(".ruler canvas"), resized);
    this.#view.moved.subscribe(() => this.#wake());
    this.#view.rested.subscribe(() => this.#readLabels());
    this.#listen();
  }

  // MARK: What pages use

  get duration() { return this.#layers.length ? this.#view.duration : NaN; }
  get paused() { return this.#audio.paused; }
  get currentTime() { return this.#view.playhead; }
  set currentTime(seconds) {
    this.#view.movePlayhead(Number(seconds) || 0);
    if (this.#audio.src && this.#audio.readyState > 0) this.#audio.currentTime = this.#view.playhead;
    else this.#pendingTime = this.#view.playhead;
    this.#stopAt = Infinity;
    this.#fire("timeupdate");
  }

  /** @returns {Span | null} seconds */
  get selection() { return this.#view.selection && { ...this.#view.selection }; }
  set selection(span) { this.#select(span); }

  /** What is seen, in seconds. */
  get visible() { return { ...this.#view.target }; }
  set visible({ start, end }) { this.#view.show({ start, end }); }
  /** Zooms until the visible stretch is `factor` times as long. */
  zoom(/** @type {number} */ factor, /** @type {number | undefined} */ at = undefined) { this.#view.zoom(factor, at); }
  showAll() { this.#view.showAll(); }

  /** Plays from the playhead; from the start of the selection if it is outside of it, and then only to its end. */
  async play() {
    const { selection, playhead, duration } = this.#view;
    if (!this.#audio.getAttribute("src")) this.#setAudio();
    if (selection && (playhead < selection.start || playhead >= selection.end - 0.01)) this.currentTime = selection.start;
    else if (playhead >= duration - 0.01) this.currentTime = 0;
    this.#stopAt = selection ? selection.end : Infinity;
    try { await this.#audio.play(); } catch (error) {
      await new Promise(done => setTimeout(done));
      if (!this.#conversion) throw error;
      await this.#conversion;
    }
  }
  pause() { this.#audio.pause(); }
  /** The media element that plays, for what this element has no name for, such as `volume` or `playbackRate`. */
  get media() { return this.#audio; }

  get form() { return this.#internals.form; }
  get name() { return this.getAttribute("name") ?? ""; }
  set name(name) { this.setAttribute("name", name); }
  get type() { return this.localName; }
  /** The selection as forms send it, `start-end` in seconds, or "". */
  get value() { return this.#view.selection ? `${round(this.#view.selection.start)}-${round(this.#view.selection.end)}` : ""; }
  set value(text) {
    const match = /^(\d+(?:\.\d+)?)-(\d+(?:\.\d+)?)$/.exec(text ?? "");
    this.#select(match && { start: Number(match[1]), end: Number(match[2]) });
  }
  get validity() { return this.#internals.validity; }
  get validationMessage() { return this.#internals.validationMessage; }
  get willValidate() { return this.#internals.willValidate; }
  checkValidity() { return this.#internals.checkValidity(); }
  reportValidity() { return this.#internals.reportValidity(); }

  // MARK: What browsers call

  connectedCallback() {
    if (this.#isStale) this.#plan();
    const dark = matchMedia("(prefers-color-scheme: dark)"), wake = () => this.#wake();
    dark.addEventListener("change", wake);
    this.#forget = () => dark.removeEventListener("change", wake);
  }

  disconnectedCallback() {
    this.#forget();
    this.pause();
    // An element that is only moved is connected again at once.
    queueMicrotask(() => { if (!this.isConnected) this.#close(); });
  }

  attributeChangedCallback(/** @type {string} */ name, /** @type {string | null} */ old, /** @type {string | null} */ value) {
    if (old === value) return;
    switch (name) {
      case "src": case "recording": case "token": case "overlay": return this.#plan();
      case "start": case "end": return this.#showAttributes();
      case "labels": this.#labels = null; return this.#readLabels();
      case "spectrogram": return void this.#openSpectrogram();
      case "controls": this.#find(".controls").hidden = value === null; return;
      case "required": return this.#judge();
      case "disabled": return this.formDisabledCallback(value !== null);
      default: this.#wake();
    }
  }

  formResetCallback() { this.#select(null); }
  formStateRestoreCallback(/** @type {string} */ state) { this.value = state; }
  formDisabledCallback(/** @type {boolean} */ isDisabled) {
    this.#find(".wave").tabIndex = isDisabled ? -1 : 0;
    this.#find(".wave").setAttribute("aria-disabled", String(isDisabled));
    for (const button of this.#root.querySelectorAll("button")) button.disabled = isDisabled;
    if (isDisabled) this.pause();
  }

  // MARK: Loading

  /** Loads again after all attributes that a script sets now. */
  #plan() {
    this.#isStale = true;
    if (this.#isLoading || !this.isConnected) return;
    this.#isLoading = true;
    queueMicrotask(() => { this.#isLoading = false; if (this.isConnected) void this.#load(); });
  }

  #close() {
    this.#isStale = true;
    this.#remote?.close();
    for (const { waveform } of this.#layers) this.#store?.forget(waveform);
    this.#spectrogram?.close();
    this.#audio.removeAttribute("src");
    this.#audio.load();
    [this.#remote, this.#store, this.#layers, this.#labels, this.#spectrogram, this.info] = [null, null, [], null, null, null];
    this.#conversion = null;
  }

  get #place() {
    const src = this.getAttribute("src") ?? "", id = this.getAttribute("recording") ?? "", token = this.getAttribute("token") ?? "";
    const base = src && !src.includes("/v1/recordings/") ? new URL(src.replace(/\/?$/, "/"), document.baseURI).href : origin;
    return parsePlace(id || src, base, token);
  }

  async #load() {
    this.#close();
    this.#isStale = false;
    this.#show(null);
    const place = this.#place;
    if (!place) {
      if (this.getAttribute("recording") || this.getAttribute("src")) this.#fail(new StillwaveError("The recording's id or address isn't valid.", "invalid_recording", 0));
      return this.#wake();
    }
    const remote = this.#remote = new Remote(error => this.#fail(error)), store = this.#store = new TileStore(/** @type {any} */ (remote));
    remote.add(place);
    store.arrived.subscribe(() => {
      // The service is back.
      if (this.error?.code === "unreachable") this.#show(null);
      this.#judgeGrowth();
      this.#wake();
    });
    try {
      const layer = await this.#addLayer(remote, place.id, "original");
      if (this.#remote !== remote) return;
      this.#view.reset(layer.waveform.totalFrames / layer.waveform.sampleRate || 1, layer.waveform.sampleRate);
      if (this.#wanted) this.#select(this.#wanted);
      this.#showAttributes();
      this.#fire("loadedmetadata");
      this.#readLabels();
      void this.#openSpectrogram();
      const over = parsePlace(this.getAttribute("overlay") ?? "", place.base, place.token);
      if (over) {
        remote.add(over);
        await this.#addLayer(remote, over.id, "cleaned");
      }
    } catch { /* the error was reported */ }
  }

  /** @type {Span | null} a selection that was set before the recording was known */
  #wanted = null;

  /**
   * Adds a recording to the picture and follows it while it grows.
   * @param {Remote} remote
   * @param {string} id
   * @param {"original" | "cleaned"} role
   */
  async #addLayer(remote, id, role) {
    const read = async () => (await remote.fetch(`v1/recordings/${id}`)).json();
    const recording = await read(), layer = { waveform: new Waveform(recording, "mix"), role, color: 0, revealed: Infinity, job: null };
    if (this.#remote !== remote) throw new DOMException("", "AbortError");
    this.#layers.push(layer);
    const learn = (/** @type {any} */ now) => {
      layer.waveform.learn(now);
      layer.job = layer.waveform.complete ? null : now.waveform.job ?? true;
      if (role === "original") this.info = now;
      this.#judgeGrowth();
      if (now.waveform.state === "failed") this.#fail(new StillwaveError("The recording's waveform couldn't be made.", "waveform_failed", 200));
      this.#wake();
    };
    learn(recording);
    if (["queued", "building"].includes(recording.waveform.state)) void (async () => {
      for (let state = recording; ["queued", "building"].includes(state.waveform.state);) {
        await pause(growth, remote.ending);
        if (this.#remote !== remote) return;
        state = await read();
        learn(state);
      }
    })().catch(() => { /* reported */ });
    return layer;
  }

  /** The length may be an estimate until the file has been read. */
  #judgeGrowth() {
    const longest = Math.max(...this.#layers.map(({ waveform }) => (waveform.totalFrames || waveform.availableFrames) / waveform.sampleRate));
    if (longest > 0) this.#view.setDuration(longest);
  }

  #showAttributes() {
    const [start, end] = ["start", "end"].map(name => parseFloat(this.getAttribute(name) ?? ""));
    if (this.#layers.length && (start >= 0 || end > 0)) this.#view.show({ start: start || 0, end: end || this.#view.duration }, true);
  }

  async #openSpectrogram() {
    const isWanted = this.hasAttribute("spectrogram"), place = this.#find(".spectrogram"), remote = this.#remote;
    place.hidden = !isWanted;
    if (!isWanted) {
      this.#spectrogram?.close();
      this.#spectrogram = null;
    }
    if (!isWanted || this.#spectrogram || !remote || !this.#layers.length) return;
    try {
      const { Spectrogram } = await import("./spectrogram.js");
      if (this.#remote !== remote || this.#spectrogram || !this.hasAttribute("spectrogram")) return;
      this.#spectrogram = new Spectrogram(place, remote, this.#layers[0].waveform);
      this.#wake();
    } catch (error) { this.#fail(new StillwaveError(String(error), "unreachable", 0)); }
  }

  // MARK: Labels

  async #readLabels() {
    const wanted = this.getAttribute("labels"), remote = this.#remote, place = this.#find(".labels"), { start, end } = this.#view.target;
    place.hidden = wanted === null;
    if (wanted === null || !remote || !this.#layers.length) return;
    if (this.#labels && this.#labels.from <= start && this.#labels.to >= end) return;
    const path = `v1/recordings/${this.#layers[0].waveform.id}/labels`, span = end - start;
    try {
      let track = wanted || this.#labels?.track;
      if (!track) track = (await (await remote.fetch(path)).json()).tracks[0]?.id;
      if (!track) return;
      const [from, to] = [Math.max(0, start - span), end + span];
      const { labels } = await (await remote.fetch(`${path}/${encodeURIComponent(track)}?start=${from}&end=${to}`)).json();
      if (this.#remote !== remote) return;
      this.#labels = { track, from, to, list: labels };
      this.#wake();
    } catch { /* reported */ }
  }

  #drawLabels() {
    const place = this.#find(".labels"), { start, end } = this.#view.window, span = end - start;
    if (place.hidden) return;
    const seen = this.#labels?.list.filter(label => label.start < end && label.end >= start) ?? [];
    const few = seen.slice(0, mostLabels);
    while (place.children.length > few.length) place.lastChild?.remove();
    few.forEach((label, k) => {
      const box = /** @type {HTMLElement} */ (place.children[k] ?? place.appendChild(make("div", { class: "label", part: "label", role: "listitem" })));
      const left = Math.max(0, (label.start - start) / span), right = Math.min(1, (label.end - start) / span);
      if (box.textContent !== label.text) box.title = box.textContent = label.text;
      box.style.left = `${100 * left}%`;
      box.style.width = `${100 * (right - left)}%`;
    });
  }

  // MARK: Drawing

  #wake() {
    if (this.#isFramed) return;
    this.#isFramed = true;
    requestAnimationFrame(time => {
      this.#isFramed = false;
      this.#frame(time);
    });
  }

  #frame(/** @type {number} */ time) {
    const view = this.#view, isMoving = view.advance(Math.min(50, time - this.#lastFrame || 16)), isPlaying = !this.#audio.paused;
    this.#lastFrame = time;
    if (isPlaying) this.#follow();
    this.#draw();
    if (view.target !== this.#shownTarget) {
      this.#shownTarget = view.target;
      this.#fire("zoomchange");
    }
    if (isMoving || isPlaying) this.#wake();
  }

  /** Moves the playhead with the sound, and the window with the playhead. */
  #follow() {
    const { currentTime } = this.#audio, view = this.#view, before = view.playhead;
    if (currentTime >= this.#stopAt) {
      this.pause();
      view.movePlayhead(this.#stopAt);
      return;
    }
    view.movePlayhead(currentTime);
    const { start, end } = view.target;
    if (before <= end && currentTime > end && end < view.duration) view.show({ start: currentTime, end: currentTime + end - start });
  }

  #draw() {
    const view = this.#view, { surface, ruler } = this, store = this.#store;
    const style = (/** @type {string} */ name) => getComputedStyle(this.#find(`[data-color=${name}]`)).color;
    const [peak, rms, overPeak, overRms, line, ink, quiet] = drawn.map(style);
    const palette = { original: { peak, rms, front: quiet }, cleaned: [{ peak: overPeak, rms: overRms, front: overRms }], line, ink, quiet, font: `11px ${getComputedStyle(this).fontFamily}` };
    if (store && this.#layers.length && surface.width > 0) {
      const { urgent, likely } = wishes(this.#layers, view.target, surface.canvas.width, { start: 0, end: view.duration }, surface.canvas.width);
      store.want([...urgent, ...likely]);
      drawWaveforms(surface, view.window, this.#layers, /** @type {any} */ (palette), view.gain, store);
      drawRuler(ruler, view.window, /** @type {any} */ (palette));
      this.#spectrogram?.draw(view.window);
    } else {
      surface.clear();
      ruler.clear();
    }
    const { start, end } = view.window, span = end - start, place = (/** @type {number} */ at) => (at - start) / span * surface.width;
    const head = this.#find(".playhead"), mark = this.#find(".selection"), x = place(view.playhead);
    head.hidden = !this.#layers.length || x < 0 || x > surface.width;
    head.style.transform = `translateX(${x}px)`;
    mark.hidden = !view.selection;
    if (view.selection) {
      const left = Math.max(-4, place(view.selection.start)), right = Math.min(surface.width + 4, place(view.selection.end));
      mark.hidden = right < left;
      mark.style.transform = `translateX(${left}px)`;
      mark.style.width = `${Math.max(3, right - left)}px`;
    }
    const isWhole = !this.#layers.length || span >= view.duration * 0.9999, thumb = this.#find(".thumb");
    this.#find(".scroller").hidden = isWhole;
    thumb.style.left = `${100 * start / view.duration}%`;
    thumb.style.width = `${100 * span / view.duration}%`;
    this.#drawLabels();
    this.#describe();
  }

  /** Describes the current view to screen readers. */
  #describe() {
    const { playhead, duration, selection } = this.#view, wave = this.#find(".wave"), has = this.#layers.length > 0;
    const clock = has ? texts.position(formatTime(playhead, 1), formatTime(duration, 1)) : "";
    const chosen = selection ? `, ${texts.selected(formatTime(selection.start), formatTime(selection.end))}` : "";
    const set = (/** @type {Element} */ element, /** @type {string} */ name, /** @type {string} */ value) => { if (element.getAttribute(name) !== value) element.setAttribute(name, value); };
    set(wave, "aria-label", this.getAttribute("aria-label") ?? this.info?.name ?? texts.waveform);
    set(wave, "aria-valuemax", String(has ? round(duration) : 0));
    set(wave, "aria-valuenow", String(Math.round(playhead * 10) / 10));
    set(wave, "aria-valuetext", clock + chosen);
    this.#find(".time").textContent = has ? `${formatTime(playhead, 0)} / ${formatTime(duration, 0)}` : "";
    const isPaused = this.#audio.paused;
    for (const button of this.#root.querySelectorAll("button")) {
      const name = /** @type {"play" | "in" | "out" | "all"} */ (button.dataset.do);
      set(button, "aria-label", name === "play" && !isPaused ? texts.pause : texts[name]);
    }
    const path = this.#root.querySelector(".play path");
    if (path) set(path, "d", isPaused ? paths.play : paths.pause);
  }

  // MARK: Hands

  #listen() {
    const wave = this.#find(".wave"), scroller = this.#find(".scroller"), audio = this.#audio;
    wave.addEventListener("keydown", event => this.#press(event));
    wave.addEventListener("wheel", event => this.#turn(event), { passive: false });
    this.#point(wave);
    let grip = NaN;
    scroller.addEventListener("pointerdown", event => {
      if (this.#isDisabled) return;
      const { width, left } = scroller.getBoundingClientRect(), { start, end } = this.#view.target, at = (event.clientX - left) / width * this.#view.duration;
      grip = at >= start && at <= end ? at - start : (end - start) / 2;
      scroller.setPointerCapture(event.pointerId);
      move(event);
    });
    const move = (/** @type {PointerEvent} */ event) => {
      if (Number.isNaN(grip)) return;
      const { width, left } = scroller.getBoundingClientRect(), { start, end } = this.#view.target;
      const from = (event.clientX - left) / width * this.#view.duration - grip;
      this.#view.show({ start: from, end: from + end - start }, true);
    };
    scroller.addEventListener("pointermove", move);
    for (const name of ["pointerup", "pointercancel"]) scroller.addEventListener(name, () => { grip = NaN; });
    this.#find(".controls").addEventListener("click", event => {
      const button = /** @type {HTMLElement | null} */ (/** @type {Element} */ (event.target).closest("button"));
      const act = { play: () => this.#toggle(), in: () => this.zoom(0.5), out: () => this.zoom(2), all: () => this.showAll() };
      act[/** @type {keyof typeof act} */ (button?.dataset.do)]?.();
    });
    for (const name of ["play", "pause", "ended"]) audio.addEventListener(name, () => { this.#fire(name); this.#wake(); });
    audio.addEventListener("timeupdate", () => {
      if (!audio.paused) this.#fire("timeupdate");
    });
    audio.addEventListener("loadedmetadata", () => {
      if (!Number.isNaN(this.#pendingTime)) audio.currentTime = this.#pendingTime;
      this.#pendingTime = NaN;
    });
    audio.addEventListener("error", () => this.#convert());
  }

  get #isDisabled() { return this.matches(":disabled"); }

  #toggle() {
    if (this.paused) this.play().catch(() => { /* the media element's error event says why */ });
    else this.pause();
  }

  /**
   * Plays the file itself, or what it is converted to.
   * @param {string} query
   */
  #setAudio(query = "") {
    if (!this.#remote || !this.#layers.length) return;
    const { id } = this.#layers[0].waveform, address = this.#remote.address(`v1/recordings/${id}/audio${query}`), url = new URL(address);
    // Without a token, only a request in CORS mode tells the service which page asks.
    this.#audio.crossOrigin = url.origin === location.origin || url.searchParams.has("token") ? null : "anonymous";
    this.#audio.src = address;
    const { playhead } = this.#view;
    if (playhead > 0) this.#pendingTime = playhead;
  }

  #convert() {
    if (!this.#audio.getAttribute("src")) return;
    if (this.#conversion || this.#audio.error?.code === MediaError.MEDIA_ERR_NETWORK) return this.#fail(new StillwaveError(texts.unplayable, "unplayable", 0));
    this.#setAudio("?format=mp3");
    this.#conversion = this.#audio.play();
    this.#conversion.catch(() => { /* as above */ });
  }

  #press(/** @type {KeyboardEvent} */ event) {
    if (event.altKey || event.ctrlKey || event.metaKey || this.#isDisabled || !this.#layers.length) return;
    const view = this.#view, span = view.target.end - view.target.start, { playhead, selection } = view, step = span / 100;
    const go = (/** @type {number} */ to) => {
      const at = Math.min(view.duration, Math.max(0, to));
      if (event.shiftKey) {
        // The end that is at the playhead moves, the other one stays.
        const anchor = !selection ? playhead : Math.abs(selection.start - playhead) < Math.abs(selection.end - playhead) ? selection.end : selection.start;
        this.#select(anchor === at ? null : { start: Math.min(anchor, at), end: Math.max(anchor, at) }, true);
      }
      this.currentTime = at;
      const { start, end } = view.target;
      if (at < start || at > end) view.pan(at < start ? at - start : at - end);
    };
    /** @type {Record<string, () => void>} */
    const keys = {
      " ": () => this.#toggle(), ArrowRight: () => go(playhead + step), ArrowUp: () => go(playhead + step), ArrowLeft: () => go(playhead - step), ArrowDown: () => go(playhead - step),
      PageUp: () => go(playhead + span / 10), PageDown: () => go(playhead - span / 10), Home: () => go(0), End: () => go(view.duration),
      "+": () => view.zoom(0.5), "=": () => view.zoom(0.5), "-": () => view.zoom(2), "0": () => view.showAll(), Escape: () => this.#select(null, true),
    };
    const act = keys[event.key];
    if (!act || event.key === "Escape" && !selection) return;
    event.preventDefault();
    act();
  }

  #turn(/** @type {WheelEvent} */ event) {
    if (this.#isDisabled || !this.#layers.length) return;
    const { left, width } = this.#find(".wave").getBoundingClientRect(), { start, end } = this.#view.target, lines = event.deltaMode ? 16 : 1;
    const across = event.shiftKey && !event.deltaX ? event.deltaY : event.deltaX;
    if (event.ctrlKey || event.metaKey) this.#view.zoom(2 ** (event.deltaY * lines / 150), start + (end - start) * (event.clientX - left) / width);
    else if (Math.abs(across) > Math.abs(event.shiftKey ? 0 : event.deltaY) && end - start < this.#view.duration) this.#view.pan(across * lines / width * (end - start));
    else return; // The page scrolls.
    event.preventDefault();
  }

  /** A press goes to an instant, a drag selects or moves an edge, two fingers zoom. */
  #point(/** @type {HTMLElement} */ wave) {
    /** @type {Map<number, number>} where the fingers are */
    const down = new Map();
    /** @type {{ x: number, anchor: number, isDrag: boolean } | null} */
    let drag = null;
    /** @type {{ from: number, to: number } | null} the instants under two fingers */
    let pinch = null;
    const view = this.#view, x = (/** @type {PointerEvent} */ event) => event.clientX - wave.getBoundingClientRect().left;
    const time = (/** @type {number} */ at) => view.window.start + (view.window.end - view.window.start) * at / this.surface.width;
    wave.addEventListener("pointerdown", event => {
      if (event.button || this.#isDisabled || !this.#layers.length) return;
      down.set(event.pointerId, x(event));
      wave.setPointerCapture(event.pointerId);
      if (down.size === 2) {
        const [a, b] = [...down.values()].sort((one, other) => one - other);
        [drag, pinch] = [null, { from: time(a), to: time(b) }];
        return;
      }
      const reach = (event.pointerType === "touch" ? 16 : 6) / this.surface.width * (view.window.end - view.window.start), at = time(x(event)), { selection } = view;
      const near = (/** @type {number} */ edge) => Math.abs(edge - at) < reach;
      const anchor = selection && near(selection.start) ? selection.end : selection && near(selection.end) ? selection.start : at;
      drag = { x: x(event), anchor, isDrag: anchor !== at };
    });
    wave.addEventListener("pointermove", event => {
      if (!down.has(event.pointerId)) return;
      down.set(event.pointerId, x(event));
      if (pinch && down.size === 2) {
        const [a, b] = [...down.values()].sort((one, other) => one - other);
        const span = (pinch.to - pinch.from) / Math.max(0.02, (b - a) / this.surface.width), start = pinch.from - span * a / this.surface.width;
        view.show({ start, end: start + span }, true);
      } else if (drag) {
        drag.isDrag ||= Math.abs(x(event) - drag.x) > slack;
        if (!drag.isDrag) return;
        const at = Math.min(view.duration, Math.max(0, time(Math.min(this.surface.width, Math.max(0, x(event))))));
        this.#select({ start: Math.min(at, drag.anchor), end: Math.max(at, drag.anchor) });
      }
    });
    const end = (/** @type {PointerEvent} */ event) => {
      if (!down.delete(event.pointerId)) return;
      if (drag && event.type === "pointerup") {
        if (drag.isDrag) this.#tellChange();
        else {
          if (view.selection) this.#select(null, true);
          this.currentTime = time(drag.x);
        }
      }
      drag = null;
      if (!down.size) pinch = null;
    };
    for (const name of /** @type {const} */ (["pointerup", "pointercancel"])) wave.addEventListener(name, end);
  }

  /**
   * @param {Span | null} span
   * @param {boolean} [isDone] whether a person has finished choosing it
   */
  #select(span, isDone) {
    this.#wanted = this.#layers.length ? null : span && { ...span };
    const before = this.value;
    this.#view.select(this.#layers.length ? span : null);
    if (this.value === before) return;
    this.#stopAt = this.#view.selection && !this.paused ? this.#view.selection.end : Infinity;
    this.#internals.setFormValue(this.value || null, this.value);
    this.#judge();
    this.#fire("selectionchange");
    if (isDone) this.#tellChange();
  }

  #tellChange() {
    this.#fire("input");
    this.#fire("change");
  }

  #judge() {
    const isMissing = this.hasAttribute("required") && !this.#view.selection;
    this.#internals.setValidity(isMissing ? { valueMissing: true } : {}, isMissing ? texts.required : "", this.#find(".wave"));
  }

  // MARK: Little things

  /** @param {string} selector */
  #find(selector) { return /** @type {any} */ (this.#root.querySelector(selector)); }
  #fire(/** @type {string} */ name) { this.dispatchEvent(new Event(name)); }

  #fail(/** @type {StillwaveError} */ error) {
    if (isAbort(error)) return;
    this.#show(error);
    this.#fire("error");
  }

  #show(/** @type {StillwaveError | null} */ error) {
    this.error = error;
    const message = this.#find(".message");
    message.hidden = !error;
    message.textContent = error?.message ?? "";
  }
}

/** Six digits are finer than a frame. */
const round = (/** @type {number} */ seconds) => Number(seconds.toFixed(6));

if (globalThis.customElements && !customElements.get("stillwave-waveform")) customElements.define("stillwave-waveform", StillwaveWaveform);
