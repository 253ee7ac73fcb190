/// The ID of a noise profile that is kept.
package typealias KeptProfileID = Identifier<KeptProfile>

/// A noise profile that is kept independently of the recording that it was learned from.
package struct KeptProfile: Sendable, Equatable {
  /// The profile's ID.
  package let id: KeptProfileID
  /// Who has it. Set when the row is inserted.
  package internal(set) var tenant = Tenant.none
  /// The name shown to people.
  package var name: String
  /// The recording that it was learned from; nil if that was deleted, or the profile came from a file.
  package let recording: RecordingID?
  /// Where in the recording it was learned, as JSON; nil if that isn't known.
  package let noise: String?
  /// The recording's sample rate in Hz, if known.
  package let sampleRate: Int?
  /// Number of channels.
  package let channels: Int
  /// The frequencies and densities in the caller's form.
  package let spectrum: [UInt8]
  /// Number of changes since it was created.
  package internal(set) var version: Int64 = 0
  /// When the profile was created.
  package let createdAt: Timestamp
  /// When it was last changed.
  package internal(set) var changedAt: Timestamp

  /// Creates a profile with a new ID at the present `time` by the catalog's clock.
  package init(
    name: String, recording: RecordingID?, noise: String?, sampleRate: Int?, channels: Int, spectrum: [UInt8],
    at time: Timestamp
  ) {
    self.init(
      id: KeptProfileID(at: time), name: name, recording: recording, noise: noise, sampleRate: sampleRate,
      channels: channels,
      spectrum: spectrum, createdAt: time, changedAt: time)
  }

  init(
    id: KeptProfileID, name: String, recording: RecordingID?, noise: String?, sampleRate: Int?, channels: Int,
    spectrum: [UInt8], createdAt: Timestamp, changedAt: Timestamp
  ) {
    (self.id, self.name, self.recording, self.noise) = (id, name, recording, noise)
    (self.sampleRate, self.channels, self.spectrum) = (sampleRate, channels, spectrum)
    (self.createdAt, self.changedAt) = (createdAt, changedAt)
  }
}
