// @ts-check
import { recall, remember } from "./memory.js";
import { tell } from "./messages.js";
import { download, find } from "./page.js";
import { explain } from "./problems.js";
import { recordingPath } from "./service.js";
import { texts } from "./texts.js";
import { formatTime } from "./time.js";

/** The formats of a part of a recording; the first is the one that needs no conversion. */
const formats = ["wav", "flac", "mp3", "ogg", "opus"];

/** The dialog that saves the selection: as a file, or as a recording of its own. */
export class ExcerptDialog {
  /**
   * What is to be saved.
   * @type {{ recording: any, start: number, end: number } | null}
   */
  #part = null;

  /**
   * @param {import("./service.js").Service} service
   * @param {import("./session.js").Session} session
   * @param {import("./view.js").View} view
   * @param {import("./player.js").Player} player
   * @param {(recording: any, isOpened: boolean) => void} onKept
   */
  constructor(service, session, view, player, onKept) {
    this.service = service;
    this.onKept = onKept;
    this.dialog = /** @type {HTMLDialogElement} */ (find("excerpt"));
    this.format = /** @type {HTMLSelectElement} */ (find("excerpt-format"));
    this.format.replaceChildren(...formats.map(format => new Option(format.toUpperCase(), format)));
    find("selection-save").onclick = () => {
      // What is heard is what is saved.
      const layer = player.voice === "cleaned" && session.cleaned || session.original;
      if (view.selection && layer) this.#show(layer.recording, view.selection);
    };
    find("excerpt-close").onclick = () => this.dialog.close();
    find("excerpt-download").onclick = () => this.#act("excerpt-download", () => this.#download());
    find("excerpt-keep").onclick = () => this.#act("excerpt-keep", () => this.#keep());
  }

  /**
   * @param {any} recording
   * @param {import("./view.js").Span} selection
   */
  #show(recording, { start, end }) {
    this.#part = { recording, start, end };
    find("excerpt-title").textContent = texts.exportTitle(formatTime(start), formatTime(end));
    find("excerpt-source").textContent = texts.exportFrom(recording.name);
    const last = recall("excerpt format");
    if (formats.includes(last)) this.format.value = last;
    // A result's sound can be read when its job is done.
    find("excerpt-download").disabled = find("excerpt-keep").disabled = recording.sha256 === null;
    this.dialog.showModal();
  }

  /** Runs what a button does; the dialog stays open if it fails, so that another format can be chosen. */
  async #act(/** @type {string} */ id, /** @type {() => Promise<void>} */ action) {
    const button = find(id);
    button.disabled = true;
    button.classList.add("busy");
    try {
      await action();
      this.dialog.close();
    } catch (error) {
      tell(String(/** @type {Error} */(error).message), { isError: true });
    }
    button.disabled = false;
    button.classList.remove("busy");
  }

  async #download() {
    if (!this.#part) return;
    const { recording, start, end } = this.#part, format = this.format.value;
    remember("excerpt format", format);
    const path = `${recordingPath(recording.id)}/audio?start=${start}&end=${end}&format=${format}&download=1`;
    // The browser would show a refusal only as a failed download.
    await this.service.fetch(path, { method: "HEAD" });
    await download(this.service, path);
  }

  async #keep() {
    if (!this.#part) return;
    const { recording, start, end } = this.#part;
    let job = await this.service.json(`${recordingPath(recording.id)}/trim`, { method: "POST", body: { start, end } });
    find("excerpt-progress").hidden = false;
    try {
      while (["queued", "running"].includes(job.state)) {
        find("excerpt-bar").value = job.progress;
        job = await this.service.json(`v1/jobs/${job.id}?wait=20`);
      }
    } finally {
      find("excerpt-progress").hidden = true;
    }
    if (job.state !== "succeeded") throw new Error(explain(job.error, texts.wasCancelled));
    const kept = await this.service.json(recordingPath(job.result.recording));
    this.onKept(kept, false);
    tell(texts.excerptKept(kept.name), { action: { text: texts.openIt, run: () => this.onKept(kept, true) } });
  }
}
