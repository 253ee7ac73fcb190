// The three networks of DeepFilterNet3, frame by frame, compiled for several instruction sets.
//
// All sets give the same bits, by the rule of CKernels: each number goes through the same additions and
// multiplications in the same order, nothing is fused, and no sum runs across the lanes of a vector unless its order is
// written down. The results don't depend on how many streams run side by side either.
//
// Tests/ProcessingTests/VoiceNetworksTests.swift has the digest of results.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "CResampler.h"

#pragma clang assume_nonnull begin

/// The number of weights.
enum { voice_weight_count = 2134923 };

/// The features of a frame, and what the networks make of them.
struct voice_frame {
  /// Levels of the 32 bands in dB, less their running mean, divided by 40.
  float levels[32];
  /// The first 96 bins, divided by the root of their running mean magnitude.
  float real[96], imaginary[96];
  /// The gain of each band, 0 … 1.
  float gains[32];
  /// For each of the first 96 bins, the complex coefficients of five frames of input, the oldest first.
  float filter[96][5][2];
};

/// What the networks remember of one sound, and their workspace. All zeros at the sound's start.
struct voice_stream {
  /// The last three frames of features, with a 0 on each side.
  float levels[3][34], spectrum[3][2][98];
  /// A map of 96 bins for each of the last five frames, in a ring.
  float bins[5][96 * 64];
  float hidden[5][256];
  long frames;

  float level_maps[4][32 * 64], halved_bins[48 * 64], map[96 * 64], other[96 * 64];
  float embedding[512], vector[512], next[512], gates[2][768], taps[96 * 16], sums[960];
};

/// Computes the next frame of `count` sounds side by side, which uses each weight read from memory for all of them.
typedef void voice_networks(
  struct voice_stream *streams, struct voice_frame *frames, long count, const float *weights);

/// Returns the networks for this processor's widest known vectors.
voice_networks *voice_best(void);
/// Returns the networks of an instruction set, narrowest first, or null if there are no more that this processor has.
voice_networks *_Nullable voice_of_set(int index);

/// Converts numbers of 16 bits (IEEE 754 binary16, little-endian), which is exact.
void voice_expand(float *out, const uint8_t *halves, long count);

#pragma clang assume_nonnull end
