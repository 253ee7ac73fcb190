#include "runs.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
  literals = 256,
  end_of_block = 256,
  symbols = 286,
  longest_code = 15,
  shortest_run = 3,
  longest_run = 258,
  /// A token is a literal, or 256 + the length of a run at distance 1 minus 3. Blocks that are longer are no faster,
  /// and their codes fit less well.
  tokens_per_block = 1 << 12,
  adler_modulus = 65521,
};

/// How a length is written: its symbol and the bits after it (RFC 1951, 3.2.5).
struct length_code {
  uint16_t symbol;
  uint8_t bits, value;
};

struct compressor {
  uint8_t *out;
  uint64_t waiting;
  int waiting_bits;

  uint32_t count;
  uint16_t tokens[tokens_per_block];
  uint32_t uses[symbols];
  uint8_t code_bits[symbols];
  uint16_t codes[symbols];
  struct length_code lengths[longest_run - shortest_run + 1];
};

// MARK: Bits

static inline void put(struct compressor *c, uint64_t bits, int count) {
  c->waiting |= bits << c->waiting_bits;
  c->waiting_bits += count;
  while (c->waiting_bits >= 32) {
    const uint32_t word = (uint32_t)c->waiting;
    for (int byte = 0; byte < 4; byte++) c->out[byte] = (uint8_t)(word >> 8 * byte);
    c->out += 4;
    c->waiting >>= 32;
    c->waiting_bits -= 32;
  }
}

static void put_last(struct compressor *c) {
  for (; c->waiting_bits > 0; c->waiting_bits -= 8) {
    *c->out++ = (uint8_t)c->waiting;
    c->waiting >>= 8;
  }
  c->waiting_bits = 0;
}

// MARK: Codes

static void make_length_codes(struct length_code *codes) {
  int length = shortest_run;
  for (int symbol = 257; symbol < 285; symbol++) {
    const int bits = symbol < 261 ? 0 : (symbol - 261) / 4;
    for (int value = 0; value < 1 << bits && length < longest_run; value++, length++) {
      codes[length - shortest_run] = (struct length_code){(uint16_t)symbol, (uint8_t)bits, (uint8_t)value};
    }
  }
  codes[longest_run - shortest_run] = (struct length_code){285, 0, 0};
}

struct leaf {
  uint32_t uses;
  uint16_t symbol;
};

static int by_uses(const void *left, const void *right) {
  const struct leaf *a = left, *b = right;
  if (a->uses != b->uses) return a->uses < b->uses ? -1 : 1;
  return (a->symbol > b->symbol) - (a->symbol < b->symbol);
}

/// Finds the lengths of Huffman codes, at most 15, for all symbols that are used: at least two.
static void find_code_bits(const uint32_t *uses, uint8_t *code_bits) {
  struct leaf leaves[symbols];
  int count = 0;
  memset(code_bits, 0, symbols);
  for (int symbol = 0; symbol < symbols; symbol++) {
    if (uses[symbol] > 0) leaves[count++] = (struct leaf){uses[symbol], (uint16_t)symbol};
  }
  qsort(leaves, (size_t)count, sizeof *leaves, by_uses);

  // Leaves come first, then the nodes that join two; both are in ascending order of their sums.
  uint64_t sums[2 * symbols];
  uint16_t parents[2 * symbols];
  for (int i = 0; i < count; i++) sums[i] = leaves[i].uses;
  int leaf = 0, node = count;
  for (int made = count; made < 2 * count - 1; made++) {
    sums[made] = 0;
    for (int half = 0; half < 2; half++) {
      const bool takes_leaf = leaf < count && (node == made || sums[leaf] <= sums[node]);
      const int taken = takes_leaf ? leaf++ : node++;
      sums[made] += sums[taken];
      parents[taken] = (uint16_t)made;
    }
  }
  uint8_t depths[2 * symbols];
  int with_bits[longest_code + 1] = {0};
  depths[2 * count - 2] = 0;
  for (int i = 2 * count - 3; i >= 0; i--) depths[i] = (uint8_t)(depths[parents[i]] + 1);
  for (int i = 0; i < count; i++) with_bits[depths[i] < longest_code ? depths[i] : longest_code]++;

  // Codes that were cut to 15 bits leave no room for all; longer codes for others make it.
  uint32_t room = 0;
  for (int bits = 1; bits <= longest_code; bits++) room += (uint32_t)with_bits[bits] << (longest_code - bits);
  while (room > 1u << longest_code) {
    int bits = longest_code - 1;
    while (with_bits[bits] == 0) bits--;
    with_bits[bits]--;
    with_bits[bits + 1] += 2;
    with_bits[longest_code]--;
    room--;
  }
  // The rarest symbols get the longest codes.
  int next = 0;
  for (int bits = longest_code; bits > 0; bits--) {
    for (int i = 0; i < with_bits[bits]; i++) code_bits[leaves[next++].symbol] = (uint8_t)bits;
  }
}

/// Numbers the codes (RFC 1951, 3.2.2), with their bits in the order in which they are written.
static void number_codes(const uint8_t *code_bits, uint16_t *codes) {
  uint32_t next[longest_code + 2] = {0}, with_bits[longest_code + 1] = {0};
  for (int symbol = 0; symbol < symbols; symbol++) with_bits[code_bits[symbol]]++;
  with_bits[0] = 0;
  for (int bits = 1; bits <= longest_code; bits++) next[bits + 1] = (next[bits] + with_bits[bits]) << 1;
  for (int symbol = 0; symbol < symbols; symbol++) {
    uint32_t code = next[code_bits[symbol]]++, reversed = 0;
    for (int bit = 0; bit < code_bits[symbol]; bit++, code >>= 1) reversed = reversed << 1 | (code & 1);
    codes[symbol] = (uint16_t)reversed;
  }
}

// MARK: Blocks

static void write_block(struct compressor *c, bool is_last) {
  c->uses[end_of_block] = 1;
  // A code needs two symbols.
  if (c->count == 0) c->uses[0] = 1;
  find_code_bits(c->uses, c->code_bits);
  number_codes(c->code_bits, c->codes);

  put(c, is_last, 1);
  put(c, 2, 2);
  put(c, symbols - 257, 5);
  put(c, 0, 5);
  put(c, 15, 4);
  // In the order 16, 17, 18, 0, 8, 7 … (3.2.7).
  for (int number = 0; number < 19; number++) put(c, number < 3 ? 0 : 4, 3);
  for (int symbol = 0; symbol <= symbols; symbol++) {
    // The codes of 4 bits are canonical too, so a length is written as itself, highest bit first. The last one is that
    // of the distance.
    const int bits = symbol < symbols ? c->code_bits[symbol] : 1;
    put(c, (uint64_t)((bits & 1) << 3 | (bits & 2) << 1 | (bits & 4) >> 1 | bits >> 3), 4);
  }
  for (uint32_t i = 0; i < c->count; i++) {
    const uint32_t token = c->tokens[i];
    if (token < literals) {
      put(c, c->codes[token], c->code_bits[token]);
    } else {
      // The code, the bits after it, and the distance.
      const struct length_code length = c->lengths[token - literals];
      const int bits = c->code_bits[length.symbol];
      put(c, c->codes[length.symbol] | (uint64_t)length.value << bits, bits + length.bits + 1);
    }
  }
  put(c, c->codes[end_of_block], c->code_bits[end_of_block]);
  c->count = 0;
  memset(c->uses, 0, sizeof c->uses);
}

static inline void add(struct compressor *c, uint32_t token) {
  if (c->count == tokens_per_block) write_block(c, false);
  c->tokens[c->count++] = (uint16_t)token;
  c->uses[token < literals ? token : c->lengths[token - literals].symbol]++;
}

static void add_run(struct compressor *c, uint8_t value, size_t count) {
  add(c, value);
  for (count--; count >= shortest_run;) {
    const size_t taken = count < longest_run ? count : longest_run;
    add(c, literals + (uint32_t)taken - shortest_run);
    count -= taken;
  }
  for (; count > 0; count--) add(c, value);
}

/// Returns how many bytes from `start` on equal the one there.
static inline size_t run_length(const uint8_t *bytes, size_t start, size_t end) {
  const uint8_t value = bytes[start];
  size_t next = start + 1;
  const uint64_t all = value * 0x0101010101010101u;
  for (uint64_t word; next + sizeof word <= end; next += sizeof word) {
    memcpy(&word, bytes + next, sizeof word);
    if (word != all) break;
  }
  while (next < end && bytes[next] == value) next++;
  return next - start;
}

size_t stillwave_runs_bound(uint32_t width, uint32_t height) {
  // Huffman codes of a block are no longer on average than codes of 9 bits for all literals and lengths.
  const size_t rows = ((size_t)width + 1) * height;
  return rows + rows / 8 + (rows / tokens_per_block + 1) * 192 + 64;
}

size_t stillwave_compress_runs(const uint8_t *pixels, uint32_t width, uint32_t height, uint8_t *out) {
  struct compressor *c = malloc(sizeof *c);
  uint8_t *row = malloc((size_t)width + 1);
  if (c == NULL || row == NULL) {
    free(c);
    free(row);
    return 0;
  }
  c->out = out;
  c->waiting = 0;
  c->waiting_bits = c->count = 0;
  memset(c->uses, 0, sizeof c->uses);
  make_length_codes(c->lengths);
  put(c, 0x0178, 16);
  uint64_t sum = 1, sum_of_sums = 0;
  const size_t length = (size_t)width + 1;
  for (uint32_t y = 0; y < height; y++) {
    const uint8_t *here = pixels + (size_t)y * width;
    row[0] = 2;
    if (y == 0) {
      memcpy(row + 1, here, width);
    } else {
      for (uint32_t x = 0; x < width; x++) row[x + 1] = (uint8_t)(here[x] - here[(ptrdiff_t)x - (ptrdiff_t)width]);
    }
    for (size_t x = 0; x < length;) {
      const uint64_t count = run_length(row, x, length), value = row[x];
      add_run(c, row[x], count);
      // Adler-32 of `count` equal bytes (RFC 1950, 8.2).
      sum_of_sums += count * sum + value * (count * (count + 1) / 2);
      sum += count * value;
      x += count;
    }
    sum %= adler_modulus;
    sum_of_sums %= adler_modulus;
  }
  write_block(c, true);
  put_last(c);
  for (int shift = 8; shift >= 0; shift -= 8) *c->out++ = (uint8_t)(sum_of_sums >> shift);
  for (int shift = 8; shift >= 0; shift -= 8) *c->out++ = (uint8_t)(sum >> shift);
  const size_t size = (size_t)(c->out - out);
  free(row);
  free(c);
  return size;
}
