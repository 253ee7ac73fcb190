// @ts-check
import { afterCalm } from "./page.js";
import { Signal } from "./signal.js";

/** @typedef {{ undo: () => void, redo: () => void, isOfView?: boolean }} Step */

/** How many steps can be undone. */
const most = 100;

/** What can be undone and redone: selections, marked noise, boxes, renaming and deleting. */
export class Undo {
  /**
   * There is more or less to undo or to redo.
   * @type {Signal<void>}
   */
  changed = new Signal();
  /** @type {Step[]} */
  #done = [];
  /** @type {Step[]} */
  #undone = [];
  #before = "";

  /**
   * @param {import("./view.js").View} view
   * @param {import("./session.js").Session} session
   */
  constructor(view, session) {
    this.view = view;
    // A drag is one step.
    const settled = afterCalm(400, () => this.#note());
    view.selected.subscribe(settled);
    view.noiseMarked.subscribe(settled);
    view.boxed.subscribe(settled);
    session.opened.subscribe(() => {
      this.#done = this.#done.filter(step => !step.isOfView);
      this.#undone = this.#undone.filter(step => !step.isOfView);
      this.#before = "";
      this.changed.emit();
    });
  }

  /** Adds a step that has been done. */
  add(/** @type {Step} */ step) {
    this.#done = [...this.#done, step].slice(-most);
    this.#undone = [];
    this.changed.emit();
  }

  get canUndo() { return this.#done.length > 0; }
  get canRedo() { return this.#undone.length > 0; }

  /** Forgets a step that can't be undone any more. */
  forget(/** @type {Step} */ step) {
    this.#done = this.#done.filter(other => other !== step);
    this.#undone = this.#undone.filter(other => other !== step);
    this.changed.emit();
  }

  undo() { this.#move(this.#done, this.#undone, "undo"); }
  redo() { this.#move(this.#undone, this.#done, "redo"); }

  #move(/** @type {Step[]} */ from, /** @type {Step[]} */ to, /** @type {"undo" | "redo"} */ way) {
    this.#note();
    const step = from.pop();
    if (!step) return;
    to.push(step);
    step[way]();
    this.#before = this.#marks;
    this.changed.emit();
  }

  get #marks() { return JSON.stringify([this.view.selection, this.view.noise, this.view.boxes]); }

  /** Adds a step if the selection, the noise or a box has changed. */
  #note() {
    const before = this.#before || "[null,null,[]]", after = this.#marks;
    if (after === before) return;
    this.#before = after;
    const set = (/** @type {string} */ marks) => () => {
      const [selection, noise, boxes] = JSON.parse(marks);
      this.view.select(selection);
      if (JSON.stringify(noise) !== JSON.stringify(this.view.noise)) this.view.markNoise(noise);
      if (JSON.stringify(boxes) !== JSON.stringify(this.view.boxes)) this.view.setBoxes(boxes);
    };
    this.add({ undo: set(before), redo: set(after), isOfView: true });
  }
}
