// @ts-check
import { strengths } from "./cleaning.js";
import { tell } from "./messages.js";
import { copy, download, find, part } from "./page.js";
import { pause, recordingPath } from "./service.js";
import { requestOf } from "./session.js";
import { texts } from "./texts.js";

/** The pause between downloads: browsers drop those that begin together. */
const downloadPace = 400;

/** Actions on several recordings of the list: cleaning them as a batch, downloading and deleting them. */
export class Picking {
  /** @param {import("./library.js").Library} library */
  constructor(library) {
    this.library = library;
    this.service = library.service;
    this.bar = find("picked");
    this.dialog = find("batch");
    find("picked-clean").onclick = () => this.#ask();
    find("picked-download").onclick = () => void this.#download();
    find("picked-remove").onclick = () => {
      const recordings = [...library.picked.values()];
      this.#clear();
      library.remove(...recordings);
    };
    find("picked-clear").onclick = () => this.#clear();
    find("batch-close").onclick = () => this.dialog.close();
    find("batch-clean").onclick = () => {
      this.dialog.close();
      void this.#clean();
    };
  }

  show() {
    const { size } = this.library.picked;
    this.bar.hidden = size === 0;
    part(this.bar, "text").textContent = texts.picked(size);
  }

  #clear() {
    this.library.picked.clear();
    void this.library.showPicked();
  }

  /** Asks how to clean; the first choices are the ones in the settings. */
  #ask() {
    find("batch-title").textContent = texts.cleanMany(this.library.picked.size);
    const reduction = Number(find("reduction").value);
    find("batch-strength").replaceChildren(...Object.entries(strengths).map(([name, decibels]) => (
      new Option(texts[/** @type {keyof typeof strengths} */ (name)], String(decibels), false, decibels === reduction))));
    for (const id of ["method", "loudness"]) {
      const options = /** @type {HTMLOptionElement[]} */ ([...find(id).options]).filter(option => !option.disabled && option.value !== "none");
      find(`batch-${id}`).replaceChildren(...options.map(option => new Option(option.text, option.value, false, option.selected)));
    }
    this.dialog.showModal();
  }

  async #clean() {
    const recordings = [...this.library.picked.keys()], loudness = Number(find("batch-loudness").value);
    const denoise = requestOf({
      noise: "auto", method: find("batch-method").value, reduction: Number(find("batch-strength").value), sensitivity: 1, output: "denoised",
      ...(loudness ? { loudness } : {}),
    });
    this.#clear();
    const row = copy("transfer-template");
    part(row, "name").textContent = texts.cleanMany(recordings.length);
    part(row, "pause").hidden = true;
    find("transfers").append(row);
    try {
      let batch = await this.service.json("v1/batches", { method: "POST", body: { recordings, denoise }, key: `${Date.now()}-${Math.random()}` });
      const path = `v1/batches/${batch.id}`;
      part(row, "cancel").onclick = () => {
        this.service.json(path, { method: "DELETE" }).catch(error => { if (error.status !== 409) tell(error.message, { isError: true }); });
      };
      while (batch.finished_at === null) {
        part(row, "bar").value = batch.progress;
        part(row, "about").textContent = `${batch.succeeded + batch.failed} / ${batch.total}`;
        batch = await this.service.json(`${path}?wait=20`);
      }
      tell(texts.batchDone(batch.succeeded, batch.total), { isError: batch.failed > 0 });
      void this.library.load();
    } catch (error) {
      tell(String(/** @type {Error} */ (error).message), { isError: true });
    }
    row.remove();
  }

  async #download() {
    const ids = [...this.library.picked.keys()];
    this.#clear();
    try {
      for (const id of ids) {
        await download(this.service, `${recordingPath(id)}/audio?download=1`);
        await pause(downloadPace);
      }
    } catch (error) {
      tell(String(/** @type {Error} */ (error).message), { isError: true });
    }
  }
}
