// @ts-check
// What the browser remembers for the page. Services below different paths of one server share the store. Without a store
// nothing is remembered.

const prefix = `stillwave ${new URL(".", document.baseURI).pathname} `;

/**
 * @param {string} key
 * @returns {any} null if nothing is remembered
 */
export function recall(key) {
  try {
    return JSON.parse(localStorage.getItem(prefix + key) ?? "null");
  } catch {
    return null;
  }
}

/**
 * @param {string} key
 * @param {unknown} value
 */
export function remember(key, value) {
  try {
    localStorage.setItem(prefix + key, JSON.stringify(value));
  } catch { /* see above */ }
}
