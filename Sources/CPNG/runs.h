// Compression of a picture's rows (RFC 1950, RFC 1951). Their values are mostly runs of zeros, because a row mostly
// equals the one above: zlib took a third of a picture's time to look for anything else.
//
//   zlib stream   0x78 0x01  blocks  Adler-32 of the rows, big-endian
//   rows          each: 2 (filter Up), then each pixel minus the one above it (mod 256)
//   block         3 bits: whether it is the last, type 2
//                 HLIT 29, HDIST 0, HCLEN 15: 286 literals and lengths, 1 distance, 19 code lengths
//                 the lengths of the code lengths' codes: 4 for 0 … 15, 0 for 16, 17 and 18
//                 the lengths of the codes: 287 of 4 bits
//                 literals, and lengths at distance 1, until the end of block (256)
//
// So what repeats is one literal and lengths at distance 1, whose only code is one bit, 0. The codes of a block are
// canonical Huffman codes of at most 15 bits for what it contains.
#pragma once

#include <stddef.h>
#include <stdint.h>

/// Returns an upper bound of the compressed size of rows of `width` pixels.
size_t stillwave_runs_bound(uint32_t width, uint32_t height);

/// Compresses the rows of a picture into `out`, which has room for `stillwave_runs_bound`. Returns the size, or 0 if
/// memory runs out.
size_t stillwave_compress_runs(const uint8_t *pixels, uint32_t width, uint32_t height, uint8_t *out);
