// @ts-check
import { isAbort } from "./service.js";
import { find } from "./page.js";

/** How many points a picture has: enough for the widest screens. */
const points = 4000;

/** Draws what a preview has made over the waveform, while the settings are those of the preview. */
export class Foresight {
  /** @type {import("./player.js").Player["computed"]} */
  #of = null;
  /** @type {Partial<Record<"denoised" | "residue", import("./preview.js").Drawing>>} */
  #pictures = {};
  #control = new AbortController();

  /**
   * @param {import("./preview.js").Previews} previews
   * @param {import("./player.js").Player} player
   * @param {import("./stage.js").Stage} stage
   * @param {import("./cleaning.js").CleaningPanel} panel
   */
  constructor(previews, player, stage, panel) {
    this.previews = previews;
    this.player = player;
    this.stage = stage;
    const update = () => this.#update();
    for (const signal of [player.changed, stage.view.noiseMarked, stage.view.boxed, panel.profiles.changed, panel.taken]) signal.subscribe(update);
    find("cleaning").addEventListener("input", update);
  }

  #update() {
    const { player, stage } = this, { computed, voice } = player, isSame = computed !== null && JSON.stringify(computed.settings) === JSON.stringify(player.settings());
    if (computed !== this.#of) void this.#read();
    const isNoise = voice === "residue", drawing = this.#pictures[isNoise ? "residue" : "denoised"];
    const preview = isSame && drawing ? { ...drawing, isNoise } : null;
    if (preview?.points === stage.preview?.points) return;
    stage.preview = preview;
    stage.redraw();
  }

  async #read() {
    const { computed } = this.player;
    this.#of = computed;
    this.#pictures = {};
    this.#control.abort();
    this.#control = new AbortController();
    if (!computed) return;
    const { signal } = this.#control, { id, window, settings } = computed;
    try {
      for (const output of /** @type {const} */ (["denoised", "residue"])) {
        const made = await this.previews.draw(id, window, { ...settings, output }, points, signal);
        signal.throwIfAborted();
        this.#pictures[output] = made;
        this.#update();
      }
    } catch (error) {
      // It is heard all the same.
      if (!isAbort(error)) this.#pictures = {};
    }
  }
}
