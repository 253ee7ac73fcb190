import PresentRows
import Testing

@testable import Storage

@Suite(.onEveryEngine) struct NoiseProfileCatalogTests {
  let folder: TemporaryFolder
  let catalog: Catalog

  init() throws {
    folder = try TemporaryFolder()
    catalog = try Catalog(at: folder("catalog.sqlite"))
  }

  private func profile(_ name: String = "Fan", bytes: Int = 3, limit: Int = 100) throws -> KeptProfile {
    let source = sample()
    try catalog.insert(source)
    let profile = KeptProfile(
      name: name, recording: source.id, noise: #"{"quantile":0.2}"#, sampleRate: 44_100, channels: 2,
      spectrum: [UInt8](repeating: 0x31, count: bytes))
    try catalog.insert(profile, limit: limit)
    return profile
  }

  private func rowCount() throws -> Int {
    try catalog.read { try $0.first("SELECT count(*) FROM noise_profiles") ?? -1 }
  }

  @Test("a profile is read back after a restart, without its recording")
  func reading() throws {
    let profile = try profile()
    let again = try Catalog(at: folder("catalog.sqlite"))
    #expect(try again.noiseProfile(profile.id) == profile)
    #expect(try again.noiseProfile(KeptProfileID()) == nil)
  }

  @Test("a list is newest first, in pages of a number of profiles and of bytes")
  func listing() throws {
    let all = try (0..<4).map { try profile("\($0)", bytes: 100) }
    #expect(try catalog.noiseProfiles(limit: 9).map(\.name) == ["3", "2", "1", "0"])
    #expect(try catalog.noiseProfiles(limit: 2, before: all[3].id).map(\.name) == ["2", "1"])
    #expect(try catalog.noiseProfiles(limit: 9, byteLimit: 200).map(\.name) == ["3", "2"])
    #expect(try catalog.noiseProfiles(limit: 9, byteLimit: 1).map(\.name) == ["3"])
  }

  @Test("a tenant's profiles don't exist for another")
  func tenants() throws {
    let (ours, theirs) = (catalog.of(try #require(Tenant("ours"))), catalog.of(try #require(Tenant("theirs"))))
    let profile = KeptProfile(
      name: "Fan", recording: nil, noise: nil, sampleRate: nil, channels: 1, spectrum: [0x31])
    try ours.insert(profile, limit: 1)
    #expect(try ours.noiseProfile(profile.id)?.name == "Fan" && ours.noiseProfiles(limit: 9).count == 1)
    #expect(try theirs.noiseProfile(profile.id) == nil && theirs.noiseProfiles(limit: 9).isEmpty)
    #expect(try theirs.renameNoiseProfile(profile.id, to: "x") { _ in true } == nil)
    #expect(try theirs.deleteNoiseProfile(profile.id) { _ in true } == false)
    // The limit is each tenant's own.
    try theirs.insert(
      KeptProfile(name: "Fan", recording: nil, noise: nil, sampleRate: nil, channels: 1, spectrum: [0x31]), limit: 1)
    #expect(try ours.noiseProfile(profile.id)?.name == "Fan")
  }

  @Test("a rename counts as a change, unless the profile isn't the expected one")
  func renaming() throws {
    let profile = try profile()
    let renamed = try #require(try catalog.renameNoiseProfile(profile.id, to: "Studio") { $0 == profile })
    #expect(renamed.name == "Studio" && renamed.version == 1)
    #expect(try catalog.noiseProfile(profile.id) == renamed)
    #expect(throws: StorageError.changedMeanwhile) {
      try catalog.renameNoiseProfile(profile.id, to: "x") { $0 == profile }
    }
    #expect(throws: StorageError.changedMeanwhile) { try catalog.deleteNoiseProfile(profile.id) { $0 == profile } }
    #expect(try catalog.renameNoiseProfile(KeptProfileID(), to: "x") { _ in true } == nil)
  }

  @Test("a deleted profile stays for the jobs that use it, until they end")
  func deleting() throws {
    let profile = try profile(), recording = sample()
    let job = Job(
      kind: .denoise, recording: recording.id, parameters: #"{"noise":{"profile":"\#(profile.id)"}}"#)
    try catalog.insert(recording, jobs: [job])
    #expect(try catalog.deleteNoiseProfile(profile.id) { _ in true })
    #expect(try catalog.noiseProfile(profile.id) == nil && catalog.noiseProfiles(limit: 9).isEmpty)
    #expect(try catalog.noiseProfile(profile.id, evenDeleted: true) == profile)
    #expect(try catalog.deleteNoiseProfile(profile.id) { _ in true } == false)
    #expect(try catalog.renameNoiseProfile(profile.id, to: "x") { _ in true } == nil)
    _ = try catalog.update(job.id) { $0.state = .succeeded }
    _ = try self.profile("another")
    #expect(try catalog.noiseProfile(profile.id, evenDeleted: true) == nil)
    #expect(try rowCount() == 1)
  }

  @Test("a profile that no job uses is deleted with its row")
  func deletingUnused() throws {
    let profile = try profile()
    #expect(try catalog.deleteNoiseProfile(profile.id) { _ in true })
    #expect(try rowCount() == 0)
  }

  @Test("there may be only so many, and deleted ones don't count")
  func limit() throws {
    let first = try profile(limit: 2)
    _ = try profile(limit: 2)
    #expect(throws: StorageError.tooManyNoiseProfiles(limit: 2)) { try profile(limit: 2) }
    #expect(try catalog.deleteNoiseProfile(first.id) { _ in true })
    _ = try profile(limit: 2)
  }

  @Test("a damaged row doesn't hide the others, and a check counts it")
  func damage() throws {
    let (bad, good) = (try profile(), try profile())
    try catalog.write { try $0.run("UPDATE noise_profiles SET channels = 0 WHERE id = ?", [bad.id.text]) }
    #expect(try catalog.noiseProfiles(limit: 9) == [good])
    #expect(try catalog.unreadableCounts().map(\.table) == ["noise_profiles"])
  }
}
