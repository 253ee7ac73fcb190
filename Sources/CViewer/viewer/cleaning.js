// @ts-check
import { listed } from "./language.js";
import { recall, remember } from "./memory.js";
import { announce, tell } from "./messages.js";
import { afterCalm, afterFrame, copy, find, label, part } from "./page.js";
import { Signal } from "./signal.js";
import { texts } from "./texts.js";
import { formatTime, parseTime } from "./time.js";

/** What the named strengths mean, in dB. */
export const strengths = /** @type {const} */ ({ gentle: 12, natural: 18, strong: 25 });

/** The settings of the noise removal, the suggestions, and the job with its progress. */
export class CleaningPanel {
  /**
   * Emitted when the settings have changed and then stayed the same for a moment.
   * @type {() => void}
   */
  onSettled = () => { };
  /**
   * Emitted when a suggested region is chosen, and when it is to be heard.
   * @type {(region: import("./view.js").Span) => void}
   */
  onChosen = () => { };
  /** @type {(region: import("./view.js").Span) => void} */
  onHear = () => { };
  /**
   * A variant was applied.
   * @type {Signal<void>}
   */
  taken = new Signal();
  /**
   * The service has said which methods are installed.
   * @type {Signal<void>}
   */
  methodsKnown = new Signal();
  /** Whether the method for voices is installed. */
  hasVoice = false;
  #areMethodsKnown = false;
  #suggested = "";
  #said = -1;
  /**
   * The buttons of the suggested regions: those that choose one, and those that play it.
   * @type {{ region: import("./view.js").Span, choose: HTMLElement[], play: HTMLElement }[]}
   */
  #suggestions = [];

  /**
   * @param {import("./session.js").Session} session
   * @param {import("./view.js").View} view
   * @param {import("./profiles.js").Profiles} profiles
   */
  constructor(session, view, profiles) {
    this.profiles = profiles;
    this.session = session;
    this.view = view;
    this.form = /** @type {HTMLFormElement} */ (find("cleaning"));
    const settled = afterCalm(250, () => {
      this.#remember();
      this.onSettled();
    });
    const uses = [[-16, texts.forPodcasts], [-14, texts.forStreaming], [-23, texts.forBroadcast]];
    find("loudness").replaceChildren(new Option(texts.sameLoudness, ""), ...uses.map(([value, use]) => (
      new Option(texts.loudnessFor(Number(value), String(use)), String(value)))));
    profiles.changed.subscribe(() => {
      this.#showNoise();
      settled();
    });
    this.form.addEventListener("submit", event => {
      event.preventDefault();
      void this.#clean();
    });
    this.form.addEventListener("input", event => {
      const { name, value } = /** @type {HTMLInputElement} */ (event.target);
      if (name === "strength") find("reduction").value = strengths[/** @type {keyof typeof strengths} */ (value)];
      this.#showSettings();
      settled();
    });
    for (const id of ["noise-start", "noise-end"]) find(id).addEventListener("change", () => this.#typeNoise());
    find("noise-clear").onclick = () => view.markNoise(null);
    find("cancel-job").onclick = () => {
      const layer = session.layers.find(other => other.job && other.role === "cleaned") ?? session.layers.find(other => other.job);
      if (layer) void session.cancel(layer);
    };
    view.noiseMarked.subscribe(() => {
      this.#showNoise();
      this.#showChosen();
      settled();
    });
    view.boxed.subscribe(() => {
      // Without boxes, there is nothing to do besides removing noise.
      const option = find("method-none"), isChosen = find("method").value === "none";
      option.hidden = option.disabled = view.boxes.length === 0;
      if (option.disabled && isChosen) find("method").value = "mmse_lsa";
      this.#showSettings();
      settled();
    });
    session.opened.subscribe(() => void this.#findMethods());
    session.changed.subscribe(() => {
      this.#showRegions();
      this.#showJob();
    });
    session.postponed.subscribe(() => tell(texts.cleanLater));
    session.ended.subscribe(({ layer, state }) => {
      this.#said = -1;
      if (state === "succeeded") {
        if (layer.role === "cleaned") tell(texts.done);
        else announce(texts.read);
      } else if (state === "cancelled" && layer.role === "cleaned") tell(texts.wasCancelled);
    });
    this.#restore();
    this.#showSettings();
    this.#showNoise();
  }

  /** Cleans everything, unless that was done with the same settings. */
  async #clean() {
    const { settings, session } = this, made = await session.madeWith(settings), clean = () => void session.clean(settings, this.#label);
    if (!made) return clean();
    const layer = session.add(made);
    if (layer) session.take(layer);
    tell(texts.alreadyCleaned(made.name), { action: { text: texts.cleanAnyway, run: clean } });
  }

  /** Offers the method for voices where it is installed. */
  async #findMethods() {
    const { service, original } = this.session;
    if (!original || this.#areMethodsKnown || service.credentials.share) return;
    this.#areMethodsKnown = true;
    try {
      await afterFrame();
      const { methods } = await service.json("v1/methods");
      this.hasVoice = methods.includes("voice");
    } catch {
      this.#areMethodsKnown = false;
    }
    if (!this.hasVoice) return;
    find("method-voice").hidden = find("method-voice").disabled = false;
    if (recall("settings")?.method === "voice") find("method").value = "voice";
    this.#showSettings();
    this.methodsKnown.emit();
  }

  #remember() {
    const { method, reduction, sensitivity } = this.settings;
    remember("settings", { method, reduction, sensitivity, loudness: find("loudness").value, output: find("keep-residue").checked ? "residue" : "denoised" });
  }

  /** Sets what was set before a reload. Fields ignore values that they don't have. */
  #restore() {
    const { method, reduction, sensitivity, loudness, output } = recall("settings") ?? {};
    for (const [id, value] of [["method", method], ["reduction", reduction], ["sensitivity", sensitivity], ["loudness", loudness]]) {
      const field = find(String(id)), former = field.value;
      if (value !== undefined) field.value = String(value);
      if (field.value === "" || field.selectedOptions?.[0].disabled) field.value = former;
    }
    find("keep-residue").checked = output === "residue";
  }

  /** @returns {import("./session.js").Settings} */
  get settings() {
    const { chosen } = this.profiles, loudness = Number(find("loudness").value), isResidue = find("keep-residue").checked;
    return {
      noise: chosen ? { profile: chosen.id } : this.view.noise ?? "auto",
      method: find("method").value,
      reduction: Number(find("reduction").value),
      sensitivity: Number(find("sensitivity").value),
      output: isResidue ? "residue" : "denoised",
      // What was removed stays as loud as it was.
      ...(loudness && !isResidue ? { loudness } : {}),
      ...(this.view.boxes.length ? { edit: { boxes: [...this.view.boxes] } } : {}),
    };
  }

  /** The name of a result among others: its strength, and every other setting that isn't the default. */
  get #label() {
    const { method, reduction, sensitivity, output, loudness, edit } = this.settings, isEdit = method === "none";
    const named = Object.entries(strengths).find(([, decibels]) => decibels === reduction)?.[0];
    return listed([
      output === "residue" && texts.residue, !isEdit && (named ? texts[/** @type {keyof typeof strengths} */ (named)] : texts.decibels(reduction)),
      method !== "mmse_lsa" && !isEdit && texts[/** @type {"wiener" | "spectral_subtraction" | "voice"} */ (method)],
      sensitivity !== 1 && method !== "voice" && !isEdit && texts.times(sensitivity), edit !== undefined && texts.boxes(edit.boxes.length), loudness !== undefined && texts.loudnessValue(loudness),
    ]);
  }

  /**
   * Applies a variant: a named strength, the method for voices, or the residue.
   * @param {string} name
   */
  take(name) {
    find("keep-residue").checked = name === "residue";
    const method = find("method");
    if (name in strengths) find("reduction").value = strengths[/** @type {keyof typeof strengths} */ (name)];
    if (name === "voice") method.value = name;
    else if (name in strengths && ["voice", "none"].includes(method.value)) method.value = "mmse_lsa";
    this.#showSettings();
    this.#remember();
    this.onSettled();
    this.taken.emit();
  }

  #showSettings() {
    const reduction = Number(find("reduction").value);
    find("reduction-text").textContent = texts.decibels(reduction);
    find("reduction").setAttribute("aria-valuetext", texts.decibels(reduction));
    const factor = Number(find("sensitivity").value);
    find("sensitivity-text").textContent = texts.times(factor);
    find("sensitivity").setAttribute("aria-valuetext", texts.times(factor));
    const method = find("method").value;
    find("sensitivity").disabled = method === "voice" || method === "none";
    find("reduction").disabled = method === "none";
    for (const [name, decibels] of Object.entries(strengths)) {
      find(`strength-${name}`).checked = decibels === reduction;
      find(`strength-${name}`).disabled = method === "none";
    }
  }

  #showNoise() {
    const { noise } = this.view;
    const { chosen } = this.profiles;
    find("noise-auto").hidden = noise !== null;
    find("noise-auto").textContent = chosen ? texts.noiseOfProfile(chosen.name) : texts.noiseAuto;
    find("noise-times").hidden = noise === null;
    if (!noise) return;
    find("noise-start").value = formatTime(noise.start);
    find("noise-end").value = formatTime(noise.end);
    announce(texts.noiseSaid(formatTime(noise.start), formatTime(noise.end)));
  }

  #typeNoise() {
    const [start, end] = ["noise-start", "noise-end"].map(id => parseTime(find(id).value));
    if (start < end) this.view.markNoise({ start, end });
    else {
      tell(texts.badTime, { isError: true });
      this.#showNoise();
    }
  }

  #showRegions() {
    const { regions, isSearching } = this.session, suggested = JSON.stringify([regions, isSearching]);
    if (suggested === this.#suggested) return;
    this.#suggested = suggested;
    for (const id of ["regions", "suggestions"]) find(id).replaceChildren();
    const take = (/** @type {import("./view.js").Span} */ region) => {
      if (isSame(region, this.view.noise)) return this.view.markNoise(null);
      this.view.select(null);
      this.view.markNoise(region);
      this.onChosen(region);
      const { start, end } = this.view.target;
      const isSeen = region.start >= start && region.end <= end;
      if (!isSeen) this.view.pan((region.start + region.end) / 2 - (start + end) / 2);
    };
    this.#suggestions = regions.map((region, k) => {
      const mark = copy("region-template"), row = copy("suggestion-template"), use = part(row, "use"), play = part(row, "play");
      const { start, end, level } = region, quality = texts.quality(region.score);
      [mark.dataset.start, mark.dataset.end] = [String(start), String(end)];
      part(mark, "rank").textContent = String(k + 1);
      use.textContent = texts.suggestion(k + 1, start, end, quality);
      for (const button of [mark, use]) {
        label(button, texts.takeSuggestion(start, end, quality, level));
        button.onclick = () => take(region);
      }
      label(play, texts.hearSuggestion(start, end));
      play.onclick = () => this.onHear(region);
      find("regions").append(mark);
      find("suggestions").append(row);
      return { region, choose: [mark, use], play };
    });
    this.#showChosen();
    if (!regions.length) find("suggestions").textContent = isSearching ? texts.regionsSearched : texts.regionsNone;
    this.view.moved.emit();
  }

  #showChosen() {
    for (const { region, choose } of this.#suggestions) {
      for (const button of choose) button.setAttribute("aria-pressed", String(isSame(region, this.view.noise)));
    }
  }

  /**
   * Shows which suggested region is heard.
   * @param {import("./view.js").Span | null} heard
   */
  showHeard(heard) {
    for (const { region, play } of this.#suggestions) part(play, "icon").setAttribute("href", isSame(region, heard) ? "#i-pause" : "#i-play");
  }

  #showJob() {
    const layer = this.session.layers.find(other => other.job && other.role === "cleaned")
      ?? this.session.layers.find(other => other.job);
    const isCleaning = layer?.role === "cleaned", area = find("job");
    area.hidden = !layer;
    const { original } = this.session, isReadable = original !== null && original.recording.sha256 !== null && !original.failure;
    find("preview").disabled = !isReadable;
    find("clean").disabled = isCleaning || !isReadable;
    if (!layer) return;
    const { state, progress, eta } = layer.job;
    const what = state === "queued" ? texts.waiting : isCleaning ? texts.removing : texts.readingFile;
    find("job-text").textContent = what;
    find("job-left").textContent = state === "running"
      ? listed([texts.percent(progress), typeof eta === "number" && texts.left(eta)]) : "";
    find("job-bar").value = progress;
    label(find("job-bar"), what);
    const quarter = Math.floor(progress * 4);
    if (quarter !== this.#said) {
      this.#said = quarter;
      announce(listed([what, texts.percent(progress)]));
    }
  }
}

/**
 * @param {import("./view.js").Span} region
 * @param {import("./view.js").Span | null} other
 */
const isSame = ({ start, end }, other) => other !== null && Math.abs(start - other.start) < 1e-6 && Math.abs(end - other.end) < 1e-6;
