import Denoise
import Terms

// The results of work, as `WorkerReport` carries them.

/// The facts learned from the first seconds of a file, used to answer an upload.
package struct Probe: Codable, Sendable, Equatable {
  /// The format, and the header's length; the waveform job counts the actual frames.
  package var shape: SoundShape
  /// The extension for the file's name.
  package var fileExtension: String
  /// The media type to serve the file with.
  package var mediaType: String
  /// Errors in the header, as far as the beginning shows.
  package var warnings: [Warning]
  /// The facts needed to make a working copy; nil if the file can be used directly.
  package var media: MediaFacts?

  /// Creates a value from its parts.
  package init(
    shape: SoundShape, fileExtension: String, mediaType: String, warnings: [Warning], media: MediaFacts? = nil
  ) {
    (self.shape, self.fileExtension, self.mediaType) = (shape, fileExtension, mediaType)
    (self.warnings, self.media) = (warnings, media)
  }
}

/// A worker's report on an upload: its format and, if it's short, its analysis.
package struct Intake: Codable, Sendable, Equatable {
  /// The facts from the first seconds.
  package var probe: Probe
  /// The result of reading all of it; nil if it's long, needs a working copy, or its waveform couldn't be built.
  package var analysis: Analysis?

  /// Creates a value from its parts.
  package init(probe: Probe, analysis: Analysis? = nil) { (self.probe, self.analysis) = (probe, analysis) }
}

/// The result of decoding a file from end to end.
package struct Analysis: Codable, Sendable, Equatable {
  /// The number of frames actually decoded.
  package var frames: Int64
  /// Errors in the file's header, and how they were handled.
  package var warnings: [Warning]
  /// Regions that contain only noise, best first; nil if they weren't searched for.
  package var noiseRegions: [NoiseRegion]?
  /// What the file says of itself; nil if that is nothing, or wasn't asked for.
  package var tags: FileTags?

  /// Creates a value from its parts.
  package init(frames: Int64, warnings: [Warning], noiseRegions: [NoiseRegion]? = nil, tags: FileTags? = nil) {
    (self.frames, self.warnings, self.noiseRegions) = (frames, warnings, noiseRegions)
    self.tags = tags
  }
}

/// The result of a denoise job.
package struct DenoiseOutcome: Codable, Sendable, Equatable {
  /// Frames of the result, as many as the source decodes to.
  package var frames: Int64
  /// The source of the noise profile, and whether the noise was tracked; nil if no noise was removed.
  package var noise: NoiseUsed?
  /// The noise profile, in at most 96 points.
  package var profile: PowerSpectrum?
  /// Which channels shared one gain; nil if no noise was removed.
  package var link: ChannelLink?
  /// Regions of the result that contain only noise, best first; nil if they weren't searched for.
  package var noiseRegions: [NoiseRegion]?
  /// Samples of the result that exceeded full scale and were clipped.
  package var clippedSamples: Int64
  /// The level of the noise before and after, without any change of loudness; nil in a window.
  package var noiseLevel: NoiseLevels?
  /// What the method `voice` has kept of the classical result; nil with other methods.
  package var voice: VoiceUsed?
  /// The loudness before and after; nil if there is no target.
  package var loudness: LoudnessChange?
  /// Errors in the source's header, and how they were handled.
  package var warnings: [Warning]

  /// Creates a value from its parts.
  package init(
    frames: Int64, noise: NoiseUsed? = nil, profile: PowerSpectrum? = nil, link: ChannelLink? = nil,
    noiseRegions: [NoiseRegion]? = nil, clippedSamples: Int64, noiseLevel: NoiseLevels? = nil, voice: VoiceUsed? = nil,
    loudness: LoudnessChange? = nil, warnings: [Warning]
  ) {
    (self.frames, self.noise, self.profile) = (frames, noise, profile)
    (self.link, self.noiseRegions, self.clippedSamples) = (link, noiseRegions, clippedSamples)
    (self.noiseLevel, self.voice, self.loudness) = (noiseLevel, voice, loudness)
    self.warnings = warnings
  }
}

/// What the method `voice` has done.
package struct VoiceUsed: Codable, Sendable, Equatable {
  /// The share of the recording in which the classical result was kept, 0 … 1.
  package var kept: Double
  /// The version of the weights.
  package var weights: String

  /// Creates a value from its parts.
  package init(kept: Double, weights: String) { (self.kept, self.weights) = (kept, weights) }
}

/// The result of a conversion.
package struct ConversionOutcome: Codable, Sendable, Equatable {
  /// Frames of the source that are in the result.
  package var frames: Int64

  /// Creates a value from its parts.
  package init(frames: Int64) {
    self.frames = frames
  }
}

/// The result of cutting a part out of a recording.
package struct TrimOutcome: Codable, Sendable, Equatable {
  /// Frames of the result.
  package var frames: Int64
  /// Regions of the result that contain only noise, best first.
  package var noiseRegions: [NoiseRegion]?
  /// Errors in the source's sound, and what couldn't be copied.
  package var warnings: [Warning]
  /// Whether the part of a video has no pictures.
  package var lacksPictures = false

  /// Creates a value from its parts.
  package init(frames: Int64, noiseRegions: [NoiseRegion]? = nil, warnings: [Warning], lacksPictures: Bool = false) {
    (self.frames, self.noiseRegions, self.warnings) = (frames, noiseRegions, warnings)
    self.lacksPictures = lacksPictures
  }
}

/// What a noise profile was learned from.
package struct NoiseProfileOutcome: Codable, Sendable, Equatable {
  /// Where it was learned.
  package var noise: NoiseSource
  /// Findings about the recording's sound.
  package var warnings: [Warning]

  /// Creates a value from its parts.
  package init(noise: NoiseSource, warnings: [Warning]) {
    (self.noise, self.warnings) = (noise, warnings)
  }
}

/// A worker's progress.
package struct WorkerProgress: Codable, Sendable, Equatable {
  /// The fraction of the work done, 0 … 1. Never decreases.
  package var fraction: Double
  /// Frames whose waveform points are in the file.
  package var readyFrames: Int64
  /// The total number of frames, if the file states it reliably.
  package var totalFrames: Int64?
  /// An estimate otherwise.
  package var estimatedFrames: Int64?

  /// Creates a value from its parts.
  package init(fraction: Double, readyFrames: Int64, totalFrames: Int64?, estimatedFrames: Int64?) {
    self.fraction = fraction
    self.readyFrames = readyFrames
    self.totalFrames = totalFrames
    self.estimatedFrames = estimatedFrames
  }
}
