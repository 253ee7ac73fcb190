// @ts-check
import { loudest, quietest } from "./spectrogramtiles.js";

// Draws tiles of bytes in colors: with the graphics processor, where the palette is a texture, so that another palette or
// range of levels costs nothing, or, where WebGL2 is missing, as pictures that are colored again.

/** @typedef {{ tile: { bytes: Uint8Array, count: number }, left: number, right: number, top: number, bottom: number, skip: number }} Piece a tile and its place, in pixels, of which a share at the left isn't drawn */
/** @typedef {{ low: number, high: number }} Levels what has the first and the last color, in dB */

/** Matplotlib's palettes, by Smith and van der Walt (2015, CC0), as the service has them: 18 colors, between which is a line. */
const palettes = {
  magma: "000004 090720 1a1042 311165 4a1079 621980 792282 912b81 aa337d c23b75 d9466b ec5860 f7725c fc8e64 feaa74 fec68a fde2a3 fcfdbf",
  viridis: "440154 481769 472a7a 433d84 3d4e8a 355e8d 2e6d8e 297b8e 23898e 1f978b 21a585 2eb37c 46c06f 65cb5e 89d548 b0dd2f d8e219 fde725",
  grey: "000000 0f0f0f 1e1e1e 2d2d2d 3c3c3c 4b4b4b 5a5a5a 696969 787878 878787 969696 a5a5a5 b4b4b4 c3c3c3 d2d2d2 e1e1e1 f0f0f0 ffffff",
};
export const paletteNames = /** @type {(keyof typeof palettes)[]} */ (Object.keys(palettes));
const colorsOf = (/** @type {keyof typeof palettes} */ name) => palettes[name].split(" ");

/**
 * A gradient of a palette for the style, from the first color to the last.
 * @param {keyof typeof palettes} name
 */
export const gradient = name => `linear-gradient(to top, ${colorsOf(name).map(color => `#${color}`).join()})`;

/** Levels as shares of the bytes' range. */
const share = (/** @type {number} */ level) => (level - quietest) / (loudest - quietest);
/** How many textures or pictures are kept. */
const mostKept = 64;

/** Caches what was made of tiles, and drops the least recently used. */
class Kept {
  /** @type {Map<Piece["tile"], any>} */
  #made = new Map();

  /**
   * @param {(tile: Piece["tile"]) => any} make
   * @param {(made: any) => void} drop
   */
  constructor(make, drop) {
    this.make = make;
    this.drop = drop;
  }

  of(/** @type {Piece["tile"]} */ tile) {
    const made = this.#made.get(tile) ?? this.make(tile);
    this.#made.delete(tile);
    this.#made.set(tile, made);
    for (const [oldest, old] of this.#made) {
      if (this.#made.size <= mostKept) break;
      this.#made.delete(oldest);
      this.drop(old);
    }
    return made;
  }

  clear() {
    for (const made of this.#made.values()) this.drop(made);
    this.#made.clear();
  }
}

const vertices = `#version 300 es
uniform vec4 place;
uniform float skip;
out vec2 at;
void main() {
  at = vec2(mix(skip, 1.0, float(gl_VertexID & 1)), gl_VertexID >> 1);
  gl_Position = vec4(mix(place.xy, place.zw, at), 0, 1);
}`;
const fragments = `#version 300 es
precision highp float;
uniform sampler2D levels, palette;
uniform vec2 range;
in vec2 at;
out vec4 color;
void main() {
  float level = clamp((texture(levels, at).r - range.x) / (range.y - range.x), 0.0, 1.0);
  color = texture(palette, vec2((level * 17.0 + 0.5) / 18.0, 0.5));
}`;

class GraphicsPainter {
  /**
   * @param {WebGL2RenderingContext} gl
   * @param {() => void} onRestored
   */
  constructor(gl, onRestored) {
    this.gl = gl;
    this.palette = "";
    /** @type {Record<string, WebGLUniformLocation | null>} */
    this.places = {};
    const canvas = /** @type {HTMLCanvasElement} */ (gl.canvas);
    canvas.addEventListener("webglcontextlost", event => event.preventDefault());
    canvas.addEventListener("webglcontextrestored", () => {
      this.#begin();
      onRestored();
    });
    this.#begin();
  }

  #begin() {
    const { gl } = this, program = /** @type {WebGLProgram} */ (gl.createProgram());
    for (const [kind, source] of /** @type {[number, string][]} */ ([[gl.VERTEX_SHADER, vertices], [gl.FRAGMENT_SHADER, fragments]])) {
      const shader = /** @type {WebGLShader} */ (gl.createShader(kind));
      gl.shaderSource(shader, source);
      gl.compileShader(shader);
      gl.attachShader(program, shader);
    }
    gl.linkProgram(program);
    gl.useProgram(program);
    for (const name of ["place", "skip", "range", "palette"]) this.places[name] = gl.getUniformLocation(program, name);
    gl.uniform1i(this.places.palette, 1);
    gl.pixelStorei(gl.UNPACK_ALIGNMENT, 1);
    this.palette = "";
    this.kept = new Kept(({ bytes, count }) => this.#texture(gl.R8, count, bytes.length / count, gl.RED, bytes), texture => gl.deleteTexture(texture));
  }

  #texture(/** @type {number} */ inner, /** @type {number} */ width, /** @type {number} */ height, /** @type {number} */ format, /** @type {Uint8Array} */ bytes) {
    const { gl } = this, texture = gl.createTexture();
    gl.bindTexture(gl.TEXTURE_2D, texture);
    gl.texImage2D(gl.TEXTURE_2D, 0, inner, width, height, 0, format, gl.UNSIGNED_BYTE, bytes);
    for (const side of [gl.TEXTURE_WRAP_S, gl.TEXTURE_WRAP_T]) gl.texParameteri(gl.TEXTURE_2D, side, gl.CLAMP_TO_EDGE);
    for (const size of [gl.TEXTURE_MIN_FILTER, gl.TEXTURE_MAG_FILTER]) gl.texParameteri(gl.TEXTURE_2D, size, gl.LINEAR);
    return texture;
  }

  /**
   * @param {Piece[]} pieces from back to front
   * @param {Levels} levels
   * @param {keyof typeof palettes} palette
   */
  draw(pieces, levels, palette) {
    const { gl } = this, { width, height } = gl.canvas;
    if (gl.isContextLost()) return;
    gl.viewport(0, 0, width, height);
    gl.clear(gl.COLOR_BUFFER_BIT);
    if (palette !== this.palette) {
      gl.activeTexture(gl.TEXTURE1);
      this.#texture(gl.RGB8, 18, 1, gl.RGB, Uint8Array.from(colorsOf(palette).flatMap(color => [0, 2, 4].map(at => parseInt(color.slice(at, at + 2), 16)))));
      gl.activeTexture(gl.TEXTURE0);
      this.palette = palette;
    }
    gl.uniform2f(this.places.range, share(levels.low), share(levels.high));
    for (const { tile, left, right, top, bottom, skip } of pieces) {
      gl.bindTexture(gl.TEXTURE_2D, this.kept?.of(tile));
      gl.uniform4f(this.places.place, left / width * 2 - 1, 1 - top / height * 2, right / width * 2 - 1, 1 - bottom / height * 2);
      gl.uniform1f(this.places.skip, skip);
      gl.drawArrays(gl.TRIANGLE_STRIP, 0, 4);
    }
  }
}

class PicturePainter {
  #made = "";

  /** @param {CanvasRenderingContext2D} pen */
  constructor(pen) {
    this.pen = pen;
    this.colors = new Uint32Array(256);
    this.kept = new Kept(({ bytes, count }) => {
      const picture = document.createElement("canvas"), image = new ImageData(count, bytes.length / count);
      Object.assign(picture, { width: image.width, height: image.height });
      const pixels = new Uint32Array(image.data.buffer);
      for (let k = 0; k < bytes.length; k++) pixels[k] = this.colors[bytes[k]];
      picture.getContext("2d")?.putImageData(image, 0, 0);
      return picture;
    }, () => { });
  }

  /**
   * @param {Piece[]} pieces from back to front
   * @param {Levels} levels
   * @param {keyof typeof palettes} palette
   */
  draw(pieces, levels, palette) {
    const { pen } = this, made = JSON.stringify([levels, palette]);
    if (made !== this.#made) {
      this.#made = made;
      this.kept.clear();
      const anchors = colorsOf(palette).map(color => [0, 2, 4].map(at => parseInt(color.slice(at, at + 2), 16)));
      this.colors.forEach((_, k) => {
        const place = Math.min(1, Math.max(0, (k / 255 - share(levels.low)) / (share(levels.high) - share(levels.low)))) * 17, left = Math.min(16, Math.floor(place));
        const [red, green, blue] = anchors[left].map((value, part) => Math.round(value + (anchors[left + 1][part] - value) * (place - left)));
        this.colors[k] = (255 << 24 | blue << 16 | green << 8 | red) >>> 0;
      });
    }
    pen.clearRect(0, 0, pen.canvas.width, pen.canvas.height);
    for (const { tile, left, right, top, bottom, skip } of pieces) {
      const made = this.kept.of(tile), from = skip * made.width, start = left + skip * (right - left);
      pen.drawImage(made, from, 0, made.width - from, made.height, start, top, right - start, bottom - top);
    }
  }
}

/**
 * Returns what draws onto a canvas.
 * @param {HTMLCanvasElement} canvas
 * @param {() => void} onRestored called when all must be drawn again
 */
export function painterFor(canvas, onRestored) {
  // What was drawn stays until it is drawn again.
  const gl = canvas.getContext("webgl2", { antialias: false, depth: false, alpha: true, preserveDrawingBuffer: true });
  return gl ? new GraphicsPainter(gl, onRestored) : new PicturePainter(/** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d")));
}

