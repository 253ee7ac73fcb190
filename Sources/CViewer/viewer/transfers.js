// @ts-check
import { listed } from "./language.js";
import { announce, tell } from "./messages.js";
import { copy, find, label, part } from "./page.js";
import { texts } from "./texts.js";
import { Upload } from "./uploads.js";

/** How many files are listed with their own progress. */
const mostRows = 3;

/** The files that were chosen or dropped; they upload one after the other, each with its progress. */
export class Transfers {
  /** How many of them are ready since the last time that there were none. */
  #done = 0;
  /** @type {Upload[]} */
  #queue = [];
  #isRunning = false;

  /**
   * @param {import("./service.js").Service} service
   * @param {(id: string, isLast: boolean) => void} onDone
   * @param {(file: File) => boolean} takes whether a file is for the open recording, which takes it then
   */
  constructor(service, onDone, takes) {
    this.service = service;
    this.onDone = onDone;
    this.takes = takes;
    const input = find("file");
    input.addEventListener("change", () => {
      this.#sort([...input.files]);
      input.value = "";
    });
    for (const id of ["add", "choose"]) find(id).addEventListener("click", () => input.click());
    find("cancel-all").onclick = () => { for (const upload of [...this.#queue]) void upload.cancel(); };
    this.#listenToDrops();
  }

  #listenToDrops() {
    let depth = 0;
    const hint = find("drop-hint");
    const isFiles = (/** @type {DragEvent} */ event) => event.dataTransfer?.types.includes("Files");
    const show = (/** @type {boolean} */ isShown) => { hint.hidden = !isShown; };
    addEventListener("dragenter", event => { if (isFiles(event)) show(++depth > 0); });
    addEventListener("dragleave", event => { if (isFiles(event)) show(--depth > 0); });
    addEventListener("dragover", event => event.preventDefault());
    addEventListener("drop", event => {
      event.preventDefault();
      depth = 0;
      show(false);
      this.#sort([...event.dataTransfer?.files ?? []]);
    });
  }

  /** Uploads files that are recordings; the others are for the open one. */
  #sort(/** @type {File[]} */ files) { this.add(files.filter(file => !this.takes(file))); }

  /** @param {File[]} files */
  add(files) {
    for (const file of files) {
      const upload = new Upload(file, this.service);
      this.#queue.push(upload);
      this.#show(upload);
    }
    void this.#run();
  }

  async #run() {
    if (this.#isRunning) return;
    this.#isRunning = true;
    for (let upload; (upload = this.#queue.find(candidate => candidate.state === "waiting"));) await upload.run();
    this.#isRunning = false;
  }

  #show(/** @type {Upload} */ upload) {
    const row = copy("transfer-template"), { name } = upload.file;
    const bar = part(row, "bar"), about = part(row, "about"), pause = part(row, "pause");
    part(row, "name").textContent = name;
    label(bar, texts.uploading(name));
    part(row, "cancel").onclick = () => upload.cancel();
    pause.onclick = () => {
      if (upload.state === "sending") upload.pause();
      else {
        upload.state = "waiting";
        void this.#run();
      }
    };
    const leave = () => {
      row.remove();
      this.#queue = this.#queue.filter(other => other !== upload);
      this.#summarize();
    };
    let said = -1;
    const draw = () => {
      const share = upload.file.size ? upload.sent / upload.file.size : 0, { state } = upload;
      bar.value = share;
      about.textContent = state === "waiting" ? texts.uploadWaiting : state === "paused" ? texts.uploadPaused
        : upload.setback ? texts.uploadSetback(upload.setback)
        : listed([texts.percent(share), Number.isFinite(upload.secondsLeft) && texts.left(upload.secondsLeft)]);
      pause.hidden = !(state === "paused" || state === "sending");
      pause.textContent = state === "paused" ? texts.resume : texts.pauseUpload;
      if (Math.floor(share * 4) > said && state === "sending") {
        said = Math.floor(share * 4);
        announce(listed([texts.uploading(name), texts.percent(share)]));
      }
      this.#summarize();
      if (state === "cancelled") leave();
      if (state === "failed") {
        leave();
        const again = { text: texts.retry, run: () => this.add([upload.file]) };
        const list = { text: texts.whichFiles, run: () => { window.open("problems/unsupported_media", "_blank", "noopener"); } };
        tell(texts.uploadFailed(name, upload.error), { isError: true, action: !upload.isRefused ? again : upload.file.size ? list : undefined });
      }
      if (state === "done") {
        this.#done++;
        leave();
        announce(texts.uploadDone(name));
        this.onDone(upload.recording, !this.#queue.length);
      }
    };
    upload.changed.subscribe(draw);
    find("transfers").append(row);
    draw();
  }

  /** Shows what is being sent in one line: above the list, in an empty page, and where the list is a drawer. */
  #summarize() {
    const [first, ...others] = this.#queue, sum = (/** @type {(upload: Upload) => number} */ of) => this.#queue.reduce((all, upload) => all + of(upload), 0);
    find("sending").hidden = find("welcome-sending").hidden = !first;
    find("transfers-sum").hidden = !others.length;
    document.body.classList.toggle("is-sending", Boolean(first));
    [...find("transfers").children].forEach((row, k) => { /** @type {HTMLElement} */ (row).hidden = k >= mostRows; });
    if (!first) {
      if (this.#done > 1) tell(texts.uploadsDone(this.#done));
      this.#done = 0;
      return;
    }
    const share = sum(upload => upload.sent) / Math.max(1, sum(upload => upload.file.size));
    const name = others.length ? texts.uploadMore(first.file.name, others.length) : first.file.name;
    const text = listed([texts.uploading(name), first.state === "paused" ? texts.uploadPaused : texts.percent(share)]);
    for (const [line, bar] of [[find("sending-text"), find("sending-bar")], ...["transfers-sum", "welcome-sending"].map(id => ["text", "bar"].map(name => part(find(id), name)))]) {
      line.textContent = text;
      bar.value = share;
      label(bar, texts.uploading(name));
    }
  }
}
