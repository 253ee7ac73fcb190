// @ts-check
import { locale, timeOfDay } from "./language.js";
import { announce, tell } from "./messages.js";
import { find } from "./page.js";
import { texts } from "./texts.js";

// The dialogs of a service with keys: entering a key, and making a link that shares one recording.

/** What is accepted as a key, as in the service's file of keys. */
const possibleKey = /^[\x21-\x7e]{32,4096}$/;

/** Asks for a key when the service wants one; nothing else can be done without it. */
export class KeyDialog {
  /** @param {import("./credentials.js").Credentials} credentials */
  constructor(credentials) {
    const dialog = /** @type {HTMLDialogElement} */ (find("ask-key")), field = /** @type {HTMLInputElement} */ (find("access-key"));
    let isWanted = false;
    credentials.wanted.subscribe(isWrong => {
      isWanted = true;
      find("key-wrong").hidden = !isWrong;
      if (!dialog.open) dialog.showModal();
    });
    dialog.addEventListener("close", () => { if (isWanted) dialog.showModal(); });
    find("key-form").addEventListener("submit", (/** @type {Event} */ event) => {
      event.preventDefault();
      const key = field.value.trim();
      field.value = "";
      find("key-wrong").hidden = possibleKey.test(key);
      if (!possibleKey.test(key)) return;
      isWanted = false;
      dialog.close();
      credentials.enter(key);
    });
    find("sign-out").onclick = () => credentials.leave();
  }
}

/** The dialog with a link to the recording being played: a new one with a token if the service needs a key, else the address. */
export class ShareDialog {
  /** @type {any} */
  #recording = null;

  /**
   * @param {import("./service.js").Service} service
   * @param {import("./session.js").Session} session
   * @param {import("./player.js").Player} player
   */
  constructor(service, session, player) {
    this.service = service;
    this.dialog = /** @type {HTMLDialogElement} */ (find("sharing"));
    this.rights = /** @type {HTMLSelectElement} */ (find("share-rights"));
    this.time = /** @type {HTMLSelectElement} */ (find("share-time"));
    this.link = /** @type {HTMLInputElement} */ (find("share-link"));
    this.rights.replaceChildren(new Option(texts.shareListen, "read"), new Option(texts.shareLabel, "read,write"));
    this.time.replaceChildren(new Option(texts.shareHour, "3600"), new Option(texts.shareDay, "86400", true, true), new Option(texts.shareWeek, "604800"));
    const offer = () => {
      find("sign-out").hidden = !service.credentials.hasKey;
      find("share").hidden = service.credentials.share !== null || !session.original;
    };
    offer();
    session.changed.subscribe(offer);
    service.credentials.changed.subscribe(offer);
    find("share").onclick = () => {
      const layer = player.voice === "cleaned" && session.cleaned || session.original;
      if (layer) this.#show(layer.recording);
    };
    // A link that was made has what was chosen then.
    for (const choice of [this.rights, this.time]) choice.onchange = () => { find("share-made").hidden = true; };
    find("close-sharing").onclick = () => this.dialog.close();
    find("share-make").onclick = () => this.#make();
    find("share-copy").onclick = () => this.#copy();
  }

  #show(/** @type {any} */ recording) {
    this.#recording = recording;
    find("sharing-title").textContent = texts.shareTitle(recording.name);
    const isAddress = !this.service.credentials.hasKey;
    for (const element of [this.rights.parentElement, this.time.parentElement, find("share-make")]) element.hidden = isAddress;
    find("share-made").hidden = !isAddress;
    find("share-until").textContent = "";
    this.link.value = isAddress ? location.href : "";
    this.dialog.showModal();
  }

  async #make() {
    const recording = this.#recording.id, button = find("share-make");
    button.disabled = true;
    try {
      const body = { recording, scopes: this.rights.value.split(","), convert: true, expires_in: Number(this.time.value) };
      const { token, expires_at } = await this.service.json("v1/tokens", { method: "POST", body });
      this.link.value = new URL(`#recording=${recording}&token=${token}`, document.baseURI).href;
      find("share-until").textContent = texts.shareUntil(new Date(expires_at).toLocaleDateString(locale), timeOfDay(expires_at));
      find("share-made").hidden = false;
      this.link.select();
    } catch (error) {
      tell(String(/** @type {Error} */(error).message), { isError: true });
    }
    button.disabled = false;
  }

  async #copy() {
    this.link.focus();
    this.link.select();
    try {
      await navigator.clipboard.writeText(this.link.value);
    } catch {
      // Only secure pages have the clipboard. If the older way fails too, the link stays selected: keys copy it.
      if (!document.execCommand("copy")) return announce(`${texts.shareLink}: ${this.link.value}`);
    }
    this.dialog.close();
    announce(texts.shareCopied);
    tell(texts.shareCopied);
  }
}
