// @ts-check
import { readAddress } from "./address.js";
import { Signal } from "./signal.js";

// Who the page is for a service with keys. Without keys, nothing here has an effect.
//
// A person enters a key once. It stays in the session storage of the tab, and is sent only in the field Authorization,
// never in an address. Elements and downloads can't send fields, so their addresses carry a token for their one recording,
// which the service mints for the key and which is renewed at half of its time.
//
// A link #recording=…&token=… shares one recording. Its token is all that the page uses then, even if the tab has a key,
// and the page requests nothing else.

/** How long a token for elements is valid, in seconds. */
const lifetime = 12 * 3600;
const storeName = `stillwave key ${new URL(".", document.baseURI).pathname}`;

/** @typedef {{ recording: string, token: string, scopes: string[] }} Share */

export class Credentials {
  /**
   * A person must enter a key; true if the one that was entered isn't valid.
   * @type {Signal<boolean>}
   */
  wanted = new Signal();
  /**
   * Tokens were renewed, so that addresses have changed.
   * @type {Signal<void>}
   */
  renewed = new Signal();
  /**
   * The page has a key, or another one.
   * @type {Signal<void>}
   */
  changed = new Signal();
  /**
   * What a link shares; null if the page wasn't opened by one.
   * @type {Share | null}
   */
  share = null;
  #key = recall();
  /** @type {Promise<void> | null} */
  #entry = null;
  #entered = () => { };
  /**
   * Tokens by recording.
   * @type {Map<string, { token: string, end: number, timer: number, isUsed: boolean }>}
   */
  #tokens = new Map();
  /** @type {Map<string, Promise<void>>} */
  #minting = new Map();

  /** @param {string} hash the fragment of the page's address */
  constructor(hash = location.hash) {
    const { id, token } = readAddress(hash);
    if (token) this.share = { recording: id, token, scopes: scopesOf(token) };
  }

  /** Whether the page uses a key. */
  get hasKey() { return !this.share && this.#key !== ""; }

  /**
   * Adds what the page has to the fields of a request.
   * @param {Headers} headers
   * @returns {string} what it has, for `replace`
   */
  authorize(headers) {
    const used = this.share?.token ?? this.#key;
    if (used) headers.set("Authorization", `Bearer ${used}`);
    return used;
  }

  /**
   * Waits for another key than the one that was refused. All requests share one question.
   * @param {string} refused what `authorize` returned
   * @returns {Promise<boolean>} false if there can't be another one
   */
  async replace(refused) {
    if (this.share) return false;
    if (this.#key === refused) {
      this.#entry ??= new Promise(resolve => { this.#entered = resolve; });
      this.wanted.emit(refused !== "");
      await this.#entry;
    }
    return true;
  }

  /** @param {string} key */
  enter(key) {
    this.#key = key;
    for (const { timer } of this.#tokens.values()) clearTimeout(timer);
    this.#tokens.clear();
    this.#entry = null;
    remember(key);
    this.#entered();
    this.changed.emit();
  }

  /** Forgets the key. */
  leave() {
    remember("");
    location.reload();
  }

  // What a link allows

  /**
   * Whether the page may do this with what it shows; only a link forbids something by itself.
   * @param {"read" | "write" | "delete"} scope
   */
  allows(scope) { return !this.share || this.share.scopes.includes(scope); }

  /**
   * Whether a link doesn't cover a request, so that there is no point in sending it.
   * @param {string} method
   * @param {string} path
   */
  forbids(method, path) {
    if (!this.share) return false;
    const [, recording, rest = ""] = /^v1\/recordings\/([^/?]+)(?:\/([^?]*))?/.exec(path) ?? [];
    const scope = ["GET", "HEAD"].includes(method) ? "read" : method === "DELETE" ? "delete" : "write";
    return recording !== this.share.recording || !this.allows(scope)
      || !/^(|audio|video|waveform(\.\w+)?|peaks\.json|spectrogram|labels(\/.*)?)$/.test(rest);
  }

  // Addresses for elements

  /**
   * Whether `address` returns addresses of a recording that elements can read.
   * @param {string} recording
   */
  isAdmitted(recording) { return !this.hasKey || (this.#tokens.get(recording)?.end ?? 0) > Date.now(); }

  /**
   * Returns the address for an element or a download.
   * @param {string} path of something that belongs to a recording
   */
  address(path) {
    const recording = /^v1\/recordings\/([^/?]+)/.exec(path)?.[1] ?? "";
    const own = this.#tokens.get(recording), token = this.share?.token ?? own?.token;
    if (own) own.isUsed = true;
    return token ? `${path}${path.includes("?") ? "&" : "?"}token=${encodeURIComponent(token)}` : path;
  }

  /**
   * Gets a token for a recording unless there is one.
   * @param {string} recording
   * @param {(body: object) => Promise<Response>} mint requests a token
   * @returns {Promise<void>}
   */
  admit(recording, mint) {
    if (this.isAdmitted(recording)) return Promise.resolve();
    const minting = this.#minting.get(recording) ?? this.#mint(recording, mint).finally(() => this.#minting.delete(recording));
    this.#minting.set(recording, minting);
    return minting;
  }

  async #mint(/** @type {string} */ recording, /** @type {(body: object) => Promise<Response>} */ mint) {
    const answer = await mint({ recording, scopes: ["read"], convert: true, expires_in: lifetime });
    const { token, expires_at } = await answer.json();
    // By the service's clock: that of this machine may be wrong.
    const left = Date.parse(expires_at) - Date.parse(answer.headers.get("Date") ?? "") || lifetime * 1000;
    clearTimeout(this.#tokens.get(recording)?.timer);
    const timer = setTimeout(() => this.#renew(recording, mint), left / 2);
    this.#tokens.set(recording, { token, end: Date.now() + left, timer, isUsed: true });
  }

  async #renew(/** @type {string} */ recording, /** @type {(body: object) => Promise<Response>} */ mint) {
    if (!this.#tokens.get(recording)?.isUsed) return void this.#tokens.delete(recording);
    // If it fails (the recording is gone, for example), the next `admit` tries again.
    await this.#mint(recording, mint).then(() => {
      // The elements that are in use ask for their addresses now.
      const own = this.#tokens.get(recording);
      if (own) own.isUsed = false;
      this.renewed.emit();
    }, () => { });
  }
}

/**
 * Returns the scopes in a token's payload, which is JSON in base64url before a dot.
 * @param {string} token
 * @returns {string[]}
 */
function scopesOf(token) {
  try {
    const { scopes } = JSON.parse(atob(token.split(".")[0].replaceAll("-", "+").replaceAll("_", "/")));
    return Array.isArray(scopes) ? scopes : [];
  } catch {
    return [];
  }
}

// Without a store, the key lasts until the page is reloaded.

function recall() {
  try {
    return sessionStorage.getItem(storeName) ?? "";
  } catch {
    return "";
  }
}

/** @param {string} key */
function remember(key) {
  try {
    if (key) sessionStorage.setItem(storeName, key);
    else sessionStorage.removeItem(storeName);
  } catch { /* see above */ }
}
