// @ts-check
import { announce, tell } from "./messages.js";
import { copy, find, label, part } from "./page.js";
import { recall, remember } from "./memory.js";
import { Refusal } from "./service.js";
import { Signal } from "./signal.js";
import { texts } from "./texts.js";

/** @typedef {{ id: string, name: string, frequencies: number[], power_db: number[][] }} Profile */

const path = (/** @type {string} */ id) => `v1/noise-profiles/${encodeURIComponent(id)}`;

/** Noise that is kept under a name, to be removed from any recording. */
export class Profiles {
  /**
   * Another profile was chosen, or none.
   * @type {Signal<void>}
   */
  changed = new Signal();
  /** @type {Profile | null} */
  chosen = null;
  /** @type {Profile[]} */
  #profiles = [];
  /**
   * The row of each profile, by its id.
   * @type {Map<string, HTMLElement>}
   */
  #rows = new Map();
  /**
   * Deleted profiles that can still be restored.
   * @type {Set<string>}
   */
  #leaving = new Set();

  /**
   * @param {import("./service.js").Service} service
   * @param {import("./session.js").Session} session
   * @param {import("./view.js").View} view
   */
  constructor(service, session, view) {
    this.service = service;
    this.session = session;
    this.view = view;
    const field = find("noise-name");
    find("save-noise").onclick = () => this.#save(field);
    // Enter would begin the cleaning.
    field.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
      if (event.key !== "Enter") return;
      event.preventDefault();
      void this.#save(field);
    });
    view.noiseMarked.subscribe(() => {
      if (view.noise) this.choose(null);
      find("noise-save").hidden = !view.noise;
    });
    void this.#load();
  }

  /**
   * Chooses a profile instead of noise in the recording.
   * @param {Profile | null} profile
   */
  choose(profile) {
    if (profile === this.chosen) return;
    this.chosen = profile;
    remember("profile", profile?.id ?? null);
    if (profile && this.view.noise) this.view.markNoise(null);
    this.#show();
    this.changed.emit();
  }

  async #load() {
    try {
      const { profiles } = await this.service.json("v1/noise-profiles?limit=100");
      this.#profiles = profiles.filter((/** @type {Profile} */ { id }) => !this.#leaving.has(id));
      this.chosen = this.#profiles.find(({ id }) => id === (this.chosen?.id ?? recall("profile"))) ?? null;
      if (this.view.noise) this.chosen = null;
      this.#show();
      this.changed.emit();
    } catch (error) {
      this.#complain(error);
    }
  }

  /** Keeps the marked noise. */
  async #save(/** @type {HTMLInputElement} */ field) {
    const { original } = this.session, { noise } = this.view;
    if (!original || !noise) return;
    const name = field.value.trim() || original.recording.name;
    find("save-noise").disabled = true;
    try {
      await this.service.json("v1/noise-profiles", { method: "POST", body: { recording: original.recording.id, noise, name } });
      field.value = "";
      tell(texts.profileSaved(name));
      await this.#load();
    } catch (error) {
      this.#complain(error);
    }
    find("save-noise").disabled = false;
  }

  /** Shows the profiles. Rows stay in place, so that the focus and an open field do too. */
  #show() {
    const list = find("profiles"), ids = new Set(this.#profiles.map(({ id }) => id));
    find("profiles-part").hidden = !this.#profiles.length;
    for (const [id, row] of this.#rows) {
      if (ids.has(id)) continue;
      row.remove();
      this.#rows.delete(id);
    }
    for (const [k, profile] of this.#profiles.entries()) {
      const { id, name } = profile, row = this.#rows.get(id) ?? copy("profile-template"), use = part(row, "use");
      this.#rows.set(id, row);
      if (list.children[k] !== row) list.insertBefore(row, list.children[k] ?? null);
      use.textContent = name;
      label(use, texts.useProfile(name));
      use.setAttribute("aria-pressed", String(profile === this.chosen));
      use.onclick = () => this.choose(profile === this.chosen ? null : profile);
      label(part(row, "rename"), texts.rename(name));
      label(part(row, "remove"), texts.remove(name));
      part(row, "rename").onclick = () => this.#rename(row, profile);
      part(row, "remove").onclick = () => this.#remove(profile);
    }
  }

  #rename(/** @type {HTMLElement} */ row, /** @type {Profile} */ profile) {
    const field = part(row, "field"), use = part(row, "use"), rename = part(row, "rename");
    field.value = profile.name;
    label(field, texts.renameLabel(profile.name));
    use.hidden = rename.hidden = true;
    field.hidden = false;
    field.focus();
    field.select();
    let isDone = false;
    const finish = async (/** @type {boolean} */ isKept, isByKey = false) => {
      if (isDone) return;
      isDone = true;
      use.hidden = rename.hidden = false;
      field.hidden = true;
      if (isByKey) rename.focus();
      const name = field.value.trim();
      if (!isKept || !name || name === profile.name) return;
      try {
        await this.service.json(path(profile.id), { method: "PATCH", body: { name } });
        // The profiles may have been loaded again since.
        for (const other of this.#profiles) if (other.id === profile.id) other.name = name;
        announce(texts.renamed(name));
      } catch (error) {
        this.#complain(error);
      }
      this.#show();
      this.changed.emit();
    };
    field.onkeydown = (/** @type {KeyboardEvent} */ event) => {
      event.stopPropagation();
      if (event.key !== "Enter" && event.key !== "Escape") return;
      event.preventDefault();
      void finish(event.key === "Enter", true);
    };
    field.onblur = () => finish(true);
  }

  /** Hides a profile at once, and deletes it when it can no longer be restored. */
  #remove(/** @type {Profile} */ profile) {
    if (profile === this.chosen) this.choose(null);
    const row = this.#rows.get(profile.id), next = row?.nextElementSibling ?? row?.previousElementSibling;
    if (row?.contains(document.activeElement)) (next ? part(next, "use") : find("cleaning")).focus();
    this.#leaving.add(profile.id);
    this.#profiles = this.#profiles.filter(other => other !== profile);
    this.#show();
    const remove = () => {
      this.service.json(path(profile.id), { method: "DELETE", keepalive: true }).catch(error => this.#complain(error));
    };
    addEventListener("pagehide", remove);
    const end = () => {
      removeEventListener("pagehide", remove);
      this.#leaving.delete(profile.id);
    };
    tell(texts.deleted(profile.name), {
      action: {
        text: texts.undo,
        run: () => {
          end();
          void this.#load();
        },
      },
      onGone: () => {
        end();
        remove();
      },
    });
  }

  #complain(/** @type {unknown} */ error) {
    // It is gone, the service has no profiles, or a link doesn't share them.
    if (error instanceof Refusal && (error.status === 404 || error.code === "not_shared")) return;
    tell(String(/** @type {Error} */(error).message), { isError: true });
  }
}
