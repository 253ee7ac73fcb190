import Terms

// As in a recording's description, which is in the same folder as its files and so has their names, not their keys.

extension Recording: Codable {
  private enum CodingKeys: String, CodingKey {
    case id, owner, name, createdAt, bytes, sha256, format, waveformState, waveformJob, waveformFile, audioFile, media
    case workingFile, workingBytes, workingDigest = "workingSha256", waveformBytes, mapBytes, warnings, derivedFrom,
      noiseRegions, tags, version
  }

  /// Reads a description. The names of its files may be anything; see `isPlausible`.
  package init(from decoder: any Decoder) throws {
    let members = try decoder.container(keyedBy: CodingKeys.self)
    let id = try members.decode(RecordingID.self, forKey: .id)
    func key(_ member: CodingKeys) throws -> ObjectKey? {
      try members.decodeIfPresent(String.self, forKey: member).map { ObjectKey(id, $0) }
    }
    self.init(
      id: id, name: try members.decode(String.self, forKey: .name),
      createdAt: try members.decode(Timestamp.self, forKey: .createdAt),
      bytes: try members.decodeIfPresent(Int64.self, forKey: .bytes),
      sha256: try members.decodeIfPresent(String.self, forKey: .sha256),
      format: try members.decode(SoundShape.self, forKey: .format),
      waveformState: try members.decode(WaveformState.self, forKey: .waveformState),
      waveformJob: try members.decodeIfPresent(JobID.self, forKey: .waveformJob),
      waveformKey: try key(.waveformFile),
      waveformBytes: try members.decodeIfPresent(Int64.self, forKey: .waveformBytes),
      mapBytes: try members.decodeIfPresent(Int64.self, forKey: .mapBytes), audioKey: try key(.audioFile),
      media: try members.decodeIfPresent(String.self, forKey: .media), workingKey: try key(.workingFile),
      workingBytes: try members.decodeIfPresent(Int64.self, forKey: .workingBytes),
      workingSHA256: try members.decodeIfPresent(String.self, forKey: .workingDigest),
      warnings: try members.decode([Warning].self, forKey: .warnings),
      derivedFrom: try members.decodeIfPresent(Derivation.self, forKey: .derivedFrom),
      noiseRegions: try members.decodeIfPresent([NoiseRegion].self, forKey: .noiseRegions))
    tags = try members.decodeIfPresent(FileTags.self, forKey: .tags)
    owner = try members.decodeIfPresent(Tenant.self, forKey: .owner)
    version = try members.decode(Int64.self, forKey: .version)
  }

  /// Writes a description.
  package func encode(to encoder: any Encoder) throws {
    var members = encoder.container(keyedBy: CodingKeys.self)
    try members.encode(id, forKey: .id)
    try members.encodeIfPresent(owner, forKey: .owner)
    try members.encode(name, forKey: .name)
    try members.encode(createdAt, forKey: .createdAt)
    try members.encodeIfPresent(bytes, forKey: .bytes)
    try members.encodeIfPresent(sha256, forKey: .sha256)
    try members.encode(format, forKey: .format)
    try members.encode(waveformState, forKey: .waveformState)
    try members.encodeIfPresent(waveformJob, forKey: .waveformJob)
    try members.encodeIfPresent(waveformFile, forKey: .waveformFile)
    try members.encodeIfPresent(audioFile, forKey: .audioFile)
    try members.encodeIfPresent(media, forKey: .media)
    try members.encodeIfPresent(workingFile, forKey: .workingFile)
    try members.encodeIfPresent(workingBytes, forKey: .workingBytes)
    try members.encodeIfPresent(workingSHA256, forKey: .workingDigest)
    try members.encodeIfPresent(waveformBytes, forKey: .waveformBytes)
    try members.encodeIfPresent(mapBytes, forKey: .mapBytes)
    try members.encode(warnings, forKey: .warnings)
    try members.encodeIfPresent(derivedFrom, forKey: .derivedFrom)
    try members.encodeIfPresent(noiseRegions, forKey: .noiseRegions)
    try members.encodeIfPresent(tags, forKey: .tags)
    try members.encode(version, forKey: .version)
  }
}
