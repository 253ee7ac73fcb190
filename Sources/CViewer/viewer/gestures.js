// @ts-check
import { stretchAround } from "./phrases.js";

// Mouse, wheel, touch and keys on the waveform, turned into moves of the view model.

/** @typedef {import("./view.js").View} View */
/** @typedef {import("./stage.js").Stage} Stage */
/** @typedef {{ x: number, y: number }} Point */

/** A pointer that moves less than this has clicked, in CSS pixels. */
const slop = 4;
/** How long a finger must rest to begin a selection, in milliseconds. */
const longPress = 380;

/**
 * @param {Stage} stage
 * @param {View} view
 * @param {(seconds: number) => void} seek
 */
export function listenToPointers(stage, view, seek) {
  const { wave, from, to, box, ruler, labels } = stage.parts;
  for (const element of [/** @type {HTMLElement} */ (wave.parentElement), ruler, labels]) wheel(element, stage, view);
  scrub(ruler, stage, seek);
  wheel(/** @type {HTMLElement} */ (box.parentElement), stage, view);
  mainView(wave, stage, view, seek);
  handle(from, to, stage, view, "start");
  handle(to, from, stage, view, "end");
  overview(/** @type {HTMLElement} */ (box.parentElement), box, stage, view);
}

/**
 * The wheel zooms around the pointer, with Shift or sideways it moves, with Alt it changes the height.
 * @param {HTMLElement} element
 * @param {Stage} stage
 * @param {View} view
 * @param {(amount: number, event: WheelEvent) => void} [stretch] changes the height by a factor, as its natural logarithm
 */
export function wheel(element, stage, view, stretch = amount => setGain(view, view.gain * Math.exp(amount))) {
  const box = stage.parts.box.parentElement;
  element.addEventListener("wheel", event => {
    event.preventDefault();
    const unit = event.deltaMode === 1 ? 32 : event.deltaMode === 2 ? 400 : 1;
    const x = event.deltaX * unit, y = event.deltaY * unit;
    if (event.altKey) {
      stretch(-(y || x) / 400, event);
    } else if (event.shiftKey || Math.abs(x) > Math.abs(y)) {
      const { start, end } = view.target;
      view.pan((event.shiftKey && !x ? y : x) / Math.max(1, stage.waves.width) * (end - start));
    } else {
      // A pinch on a touchpad arrives as wheel events with Ctrl, in small steps.
      const amount = Math.max(-120, Math.min(120, y)) * (event.ctrlKey ? 4 : 1);
      const isMain = element !== box;
      view.zoom(Math.exp(amount / 260), isMain ? stage.secondsAt(event.clientX - stage.waves.left) : undefined);
    }
  }, { passive: false });
}

/** A press on the ruler moves the playhead there, and a drag takes it along. */
function scrub(/** @type {HTMLElement} */ ruler, /** @type {Stage} */ stage, /** @type {(seconds: number) => void} */ seek) {
  const go = (/** @type {PointerEvent} */ event) => seek(stage.secondsAt(event.clientX - stage.waves.left));
  ruler.addEventListener("pointerdown", event => {
    if (event.button) return;
    ruler.setPointerCapture(event.pointerId);
    go(event);
  });
  ruler.addEventListener("pointermove", event => { if (ruler.hasPointerCapture(event.pointerId)) go(event); });
}

/**
 * @param {View} view
 * @param {number} gain
 */
export function setGain(view, gain) {
  view.isFitted = false;
  view.gain = Math.min(64, Math.max(0.5, gain));
  view.moved.emit();
}

/**
 * What a drag marks.
 * @typedef {object} Marker
 * @property {() => Span | null} held what Shift extends
 * @property {(span: Span, from: number, to: number) => void} set `from` and `to`: the pointer's height where the drag began and now, in CSS pixels of the page
 * @property {() => void} clear
 * @property {() => void} [done] the drag has ended
 */
/** @typedef {import("./view.js").Span} Span */

/**
 * Mouse: drag selects, click seeks, the middle button moves. Touch: one finger moves, two zoom, a long press selects.
 * @param {HTMLElement} wave
 * @param {Stage} stage
 * @param {View} view
 * @param {(seconds: number) => void} seek
 * @param {Marker} [marker]
 */
export function mainView(wave, stage, view, seek, marker = { held: () => view.selection, set: span => view.select(span), clear: () => view.select(null) }) {
  /** @type {Map<number, Point>} */
  const fingers = new Map();
  /** @type {"select" | "pan" | "pinch" | null} */
  let mode = null;
  let anchor = 0, startX = 0, startY = 0, lastY = 0, isDrag = false, press = 0, left = 0, beyond = 0;
  // A selection that is dragged past an edge takes the view along, the faster the farther.
  const push = () => {
    if (mode !== "select" || !beyond) return;
    view.pan(beyond / Math.max(1, stage.waves.width) * view.span * 0.15, true);
    marker.set({ start: anchor, end: stage.secondsAt(beyond < 0 ? 0 : stage.waves.width) }, startY, lastY);
    requestAnimationFrame(push);
  };
  /** @type {{ x: number, time: number, speed: number }} */
  let last = { x: 0, time: 0, speed: 0 };
  /** @type {{ start: number, end: number }} */
  let startWindow = view.window;

  const place = (/** @type {PointerEvent} */ event) => Math.min(stage.waves.width, Math.max(0, event.clientX - left));
  const pinch = () => {
    const [a, b] = [...fingers.values()];
    return { middle: (a.x + b.x) / 2, distance: Math.max(20, Math.hypot(a.x - b.x, a.y - b.y)) };
  };
  let grip = { middle: 0, distance: 1, at: 0 };

  wave.addEventListener("pointerdown", event => {
    if (event.button > 1) return;
    left = stage.waves.left;
    wave.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, { x: event.clientX - left, y: event.clientY });
    clearTimeout(press);
    if (fingers.size === 2) {
      mode = "pinch";
      const { middle, distance } = pinch();
      grip = { middle, distance, at: stage.secondsAt(middle) };
      startWindow = view.window;
      return;
    }
    startX = place(event);
    startY = lastY = event.clientY;
    isDrag = false;
    startWindow = view.window;
    last = { x: startX, time: event.timeStamp, speed: 0 };
    const isTouch = event.pointerType === "touch";
    mode = isTouch || event.button === 1 ? "pan" : "select";
    anchor = stage.secondsAt(startX);
    if (mode === "select" && event.shiftKey) {
      // Moves the end that is nearer.
      const { start, end } = marker.held() ?? { start: view.playhead, end: view.playhead };
      anchor = Math.abs(anchor - start) < Math.abs(anchor - end) ? end : start;
      isDrag = true;
      marker.set({ start: anchor, end: stage.secondsAt(startX) }, startY, startY);
    }
    if (isTouch) {
      press = setTimeout(() => {
        if (isDrag || mode !== "pan") return;
        mode = "select";
        navigator.vibrate?.(10);
        const finger = stage.view.span * 12 / Math.max(1, stage.waves.width);
        marker.set({ start: anchor - finger, end: anchor + finger }, startY - 12, startY + 12);
      }, longPress);
    }
    // A mouse sets the focus itself, and then no ring is drawn around it.
    if (mode === "select" && !isTouch) return;
    event.preventDefault();
    wave.focus({ preventScroll: true });
  });

  // A finger that moves up or down scrolls the page (`touch-action` in the style), unless it selects or there are two.
  wave.addEventListener("touchmove", event => { if (mode === "select" || mode === "pinch") event.preventDefault(); }, { passive: false });

  wave.addEventListener("pointermove", event => {
    if (!fingers.has(event.pointerId)) return;
    const x = place(event);
    fingers.set(event.pointerId, { x: event.clientX - left, y: event.clientY });
    if (mode === "pinch") {
      const { middle, distance } = pinch();
      const span = Math.min(view.duration, Math.max(view.leastSpan, (startWindow.end - startWindow.start) * grip.distance / distance));
      const start = grip.at - middle / Math.max(1, stage.waves.width) * span;
      view.show({ start, end: start + span }, true);
      return;
    }
    if (!isDrag && Math.abs(x - startX) < slop) return;
    isDrag = true;
    clearTimeout(press);
    lastY = event.clientY;
    if (mode === "select") {
      const wasBeyond = beyond !== 0, raw = event.clientX - left;
      beyond = Math.max(-100, Math.min(100, raw - x));
      marker.set({ start: anchor, end: stage.secondsAt(x) }, startY, lastY);
      if (beyond && !wasBeyond) push();
    }
    if (mode === "pan") {
      const perPixel = (startWindow.end - startWindow.start) / Math.max(1, stage.waves.width);
      const start = startWindow.start - (x - startX) * perPixel;
      const passed = event.timeStamp - last.time;
      if (passed > 0) last = { x, time: event.timeStamp, speed: (x - last.x) / passed };
      view.show({ start, end: start + startWindow.end - startWindow.start }, true);
    }
  });

  const end = (/** @type {PointerEvent} */ event) => {
    if (!fingers.delete(event.pointerId)) return;
    clearTimeout(press);
    beyond = 0;
    if (mode === "pinch") {
      // The remaining finger keeps moving the view.
      const [rest] = fingers.values();
      mode = rest ? "pan" : null;
      if (rest) [startX, startWindow, isDrag] = [rest.x, view.window, true];
      return;
    }
    if (event.type === "pointerup" && mode && !isDrag && mode !== "select" || event.type === "pointerup" && mode === "select" && !isDrag && event.pointerType !== "touch") {
      if (marker.held()) marker.clear();
      seek(anchor);
    } else if (mode === "select" && isDrag && !event.shiftKey && event.type === "pointerup" && Math.abs(place(event) - startX) < slop) {
      marker.clear();
    } else if (mode === "pan" && isDrag && event.timeStamp - last.time < 60) {
      view.pan(-last.speed * 180 * view.span / Math.max(1, stage.waves.width));
    }
    if (mode === "select") marker.done?.();
    mode = null;
  };
  wave.addEventListener("pointerup", end);
  wave.addEventListener("pointercancel", end);
  wave.addEventListener("dblclick", event => {
    if (event.target !== wave && event.target !== stage.waves.canvas) return;
    const { original } = stage.session, at = stage.secondsAt(event.clientX - stage.waves.left);
    const stretch = original && stretchAround(original.waveform, at, 2 * view.span / Math.max(1, stage.waves.width));
    if (stretch) view.select(stretch);
  });
}

/**
 * A handle moves its end of the selection against the other end, also past it.
 * @param {HTMLElement} element
 * @param {HTMLElement} opposite the other handle
 * @param {Stage} stage
 * @param {View} view
 * @param {"start" | "end"} edge
 */
function handle(element, opposite, stage, view, edge) {
  let left = 0, anchor = 0;
  const other = () => view.selection?.[edge === "start" ? "end" : "start"] ?? 0;
  element.addEventListener("pointerdown", event => {
    [left, anchor] = [stage.waves.left, other()];
    element.setPointerCapture(event.pointerId);
  });
  element.addEventListener("pointermove", event => {
    if (!element.hasPointerCapture(event.pointerId)) return;
    const x = Math.min(stage.waves.width, Math.max(0, event.clientX - left));
    view.select({ start: anchor, end: stage.secondsAt(x) });
  });
  element.addEventListener("keydown", event => {
    const direction = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 }[event.key];
    if (!direction || !view.selection) return;
    event.preventDefault();
    event.stopPropagation();
    const pixels = event.shiftKey ? 20 : 2, fixed = other(), frame = 1 / view.sampleRate;
    let moved = view.selection[edge] + direction * Math.max(frame, pixels * view.span / Math.max(1, stage.waves.width));
    if (Math.abs(moved - fixed) < frame) moved = fixed + direction * frame;
    view.select({ start: fixed, end: moved });
    const { start, end } = view.target;
    if (moved < start || moved > end) view.pan(moved - (moved < start ? start : end), true);
    // Past the other end, it is the other handle that moves on, also with a key that comes before the next frame.
    if (edge === "start" ? moved < fixed : moved > fixed) return;
    opposite.hidden = false;
    opposite.focus({ preventScroll: true });
  });
}

/** In the overview a drag moves the window, an edge resizes it, and a click elsewhere brings it there. */
function overview(/** @type {HTMLElement} */ area, /** @type {HTMLElement} */ box, /** @type {Stage} */ stage, /** @type {View} */ view) {
  /** @type {{ kind: "move" | "start" | "end", at: number, window: { start: number, end: number } } | null} */
  let drag = null;
  let left = 0;
  const seconds = (/** @type {PointerEvent} */ event) =>
    (event.clientX - left) / Math.max(1, stage.overview.width) * view.duration;
  area.addEventListener("pointerdown", event => {
    if (event.button) return;
    left = stage.overview.left;
    const at = seconds(event), { start, end } = view.target;
    const edge = 7 / Math.max(1, stage.overview.width) * view.duration;
    const isWide = end - start > 4 * edge;
    const kind = isWide && Math.abs(at - start) < edge ? "start" : isWide && Math.abs(at - end) < edge ? "end" : "move";
    if (kind === "move" && (at < start || at > end)) view.pan(at - (start + end) / 2);
    drag = { kind, at, window: view.target };
    area.setPointerCapture(event.pointerId);
    event.preventDefault();
    box.focus({ preventScroll: true });
  });
  area.addEventListener("pointermove", event => {
    if (!drag || !area.hasPointerCapture(event.pointerId)) return;
    const at = seconds(event), { start, end } = drag.window;
    if (drag.kind === "move") view.show({ start: start + at - drag.at, end: end + at - drag.at }, true);
    else view.show(drag.kind === "start" ? { start: Math.min(at, end - view.leastSpan), end } : { start, end: at }, true);
  });
  const end = () => { drag = null; };
  area.addEventListener("pointerup", end);
  area.addEventListener("pointercancel", end);
}

/**
 * Handles keys, unless the focused element uses them.
 * @param {Record<string, (event: KeyboardEvent) => void>} actions by key; `Shift+` in front where Shift matters
 */
export function listenToKeys(actions) {
  addEventListener("keydown", event => {
    if (event.altKey || event.defaultPrevented) return;
    const target = /** @type {HTMLElement} */ (event.target);
    // Escape closes a menu.
    if (event.key === "Escape" && document.querySelector(":popover-open")) return;
    if (target.closest("input:not([type=range]):not([type=radio]):not([type=checkbox]), select, textarea, dialog")) return;
    // Arrows, Home and End belong to sliders, choices and scrolling lists that have the focus; space and Enter to buttons.
    const isControl = target.closest("input, [role=radiogroup], #list, #transcript, #handle-start, #handle-end");
    if (isControl && /^(Arrow|Home|End|Page)/.test(event.key)) return;
    if (event.key === " " && target.closest("button, a, summary, input")) return;
    const name = `${event.ctrlKey || event.metaKey ? "Ctrl+" : ""}${event.key.length === 1 ? event.key.toLowerCase() : event.key}`;
    const action = (event.shiftKey && actions[`Shift+${name}`]) || actions[name];
    if (!action) return;
    event.preventDefault();
    action(event);
  });
}
