// @ts-check
// WAV as the service writes it: RIFF or RF64, chunks of an id, a size and content padded to an even length. "fmt " holds
// the tag of the samples' type (0xfffe: it follows in the extension), the channels, the rate and the bits; "data" holds
// the samples, interleaved, little-endian.

/** @typedef {{ read: (view: DataView, at: number) => number, channels: number, rate: number, width: number, dataAt: number, bytes: number }} Header what the samples are, the bytes of one, and where they are */

/**
 * Functions that read a sample, −1 … 1, by tag and number of bits.
 * @type {Record<string, ((view: DataView, at: number) => number) | undefined>}
 */
const readers = {
  "1 8": (view, at) => view.getUint8(at) / 128 - 1,
  "1 16": (view, at) => view.getInt16(at, true) / 32768,
  "1 24": (view, at) => (view.getInt16(at + 1, true) * 256 + view.getUint8(at)) / 8388608,
  "1 32": (view, at) => view.getInt32(at, true) / 2147483648,
  "3 32": (view, at) => view.getFloat32(at, true),
  "3 64": (view, at) => view.getFloat64(at, true),
};

/**
 * Reads a file's header, of which the first bytes are enough.
 * @param {ArrayBuffer} bytes
 * @returns {Header | null} null if these bytes don't contain it, or if the samples have another type
 */
export function parseHeader(bytes) {
  const view = new DataView(bytes);
  let tag = 0, channels = 0, rate = 0, bits = 0;
  for (let at = 12; at + 8 <= bytes.byteLength;) {
    const id = view.getUint32(at), size = view.getUint32(at + 4, true);
    if (id === 0x666d7420 && at + 34 <= bytes.byteLength) {
      [tag, channels, bits] = [8, 10, 22].map(offset => view.getUint16(at + offset, true));
      rate = view.getUint32(at + 12, true);
      if (tag === 0xfffe) tag = view.getUint16(at + 32, true);
    }
    if (id === 0x64617461) {
      const read = readers[`${tag} ${bits}`];
      return read && channels ? { read, channels, rate, width: bits / 8, dataAt: at + 8, bytes: size } : null;
    }
    at += 8 + size + size % 2;
  }
  return null;
}
