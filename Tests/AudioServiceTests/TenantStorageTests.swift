import Foundation
import HTTP
import Randomness
import Storage
import Testing

@testable import AudioService
@testable import Jobs

/// What is kept for a tenant, compared with the files on the disk, and the limit on it when jobs are planned and end.
@Suite struct TenantStorageTests {
  private let ours = Tenant("ours") ?? .none

  /// The service's children write results whose lengths the text of the request decides, below `most` bytes.
  private func bench(_ limits: [String: Double], resultsBelow most: Int) throws -> KeyedBench {
    let script = """
      file=$output; case $command in waveform | intake) file=$pyramid ;; esac
      number=$(echo "$request" | cksum | cut -d ' ' -f 1)
      case $command in
        probe) finish ;;
        *) finish; head -c $((number % \(most))) /dev/zero >> "${file:-/dev/null}" ;;
      esac
      """
    return try KeyedBench(KeyedBench.lines(limits: limits), script: script) { $0.maximumConversionBytes = 20_000 }
  }

  /// Bytes of the files of recordings that their rows name or should: all but the descriptions.
  private func bytesOnDisk(_ keyed: KeyedBench) throws -> Int64 {
    let folder = keyed.bench.configuration.dataDirectory + "/recordings"
    let files = try #require(FileManager.default.enumerator(atPath: folder)).compactMap { $0 as? String }
    return files.filter { !$0.contains("/recording-") }.reduce(0) { sum, name in
      // One that was listed may be removed since, with the recording.
      guard let facts = try? FileManager.default.attributesOfItem(atPath: "\(folder)/\(name)") else { return sum }
      return facts[.type] as? FileAttributeType == .typeRegular ? sum + (facts[.size] as? Int64 ?? 0) : sum
    }
  }

  private func stored(_ keyed: KeyedBench) throws -> Int64 { try keyed.bench.catalog.of(ours).usage().storedBytes }

  private func says(_ response: HTTPResponse) async throws {
    let text = String(decoding: try await response.body.collect(), as: UTF8.self)
    #expect(response.status == .contentTooLarge && text.contains("\"code\":\"limit_stored_bytes\""), "\(text)")
    #expect(response.fields["RateLimit"]?.hasPrefix("\"stored_bytes\";r=0;t=") == true)
  }

  @Test("whatever a limited tenant does, its usage is the length of its files, and within its limit")
  func random() async throws {
    // A waveform or a result of this length fits once or twice.
    let limit: Int64 = 100_000
    let keyed = try bench(["stored_bytes": Double(limit)], resultsBelow: 40_000)
    var (random, statuses) = (TestRandom(for: 5), Set<Int>())
    for _ in 0..<80 {
      let recordings = try keyed.bench.catalog.of(ours).recordings(limit: 99).filter { $0.audioKey != nil }
      let id = recordings.randomElement(using: &random)?.id
      let path = "/v1/recordings/\(id?.text ?? "")"
      let format = ["flac", "mp3", "ogg"].randomElement(using: &random) ?? ""
      let response =
        switch id == nil ? 0 : Int.random(in: 0...7, using: &random) {
        case 0, 1:
          try await keyed.respond(
            .post, "/v1/recordings", body: String(repeating: "R", count: .random(in: 1...9000, using: &random)))
        case 2: try await keyed.respond(.post, "\(path)/denoise")
        case 3: try await keyed.respond(.post, "\(path)/trim", body: "{\"start\":0,\"end\":0.5}")
        case 4: try await keyed.respond(.delete, path)
        case 5: try await keyed.respond(.post, "\(path)/denoise", body: "{\"format\":\"\(format)\"}")
        default: try await keyed.respond(.get, "\(path)/audio?format=\(format)")
        }
      statuses.insert(response.status.code)
      #expect(try stored(keyed) <= limit)
      let unfinished = try keyed.bench.catalog.unfinishedJobs()
      // Let some meet.
      if unfinished.count > 2 { for job in unfinished { _ = try await keyed.bench.finished(job.id) } }
    }
    for job in try keyed.bench.catalog.unfinishedJobs() { _ = try await keyed.bench.finished(job.id) }
    #expect(statuses.isSuperset(of: [200, 201, 202, 204, 413]), "\(statuses)")
    let kept = try stored(keyed)
    #expect(kept <= limit)
    // What canceled jobs leave is removed after them.
    try await keyed.bench.eventually { try bytesOnDisk(keyed) == kept }
    let answer = try await keyed.respond(.get, "/v1/usage").body.collect()
    #expect(String(decoding: answer, as: UTF8.self).contains("\"stored_bytes\":{\"limit\":100000,\"used\":\(kept)}"))
    for recording in try keyed.bench.catalog.of(ours).recordings(limit: 99) {
      #expect(try await keyed.status(.delete, "/v1/recordings/\(recording.id)") == 204)
    }
    #expect(try stored(keyed) == 0)
    try await keyed.bench.eventually { try bytesOnDisk(keyed) == 0 }
    await keyed.bench.runner.stop()
  }

  @Test("a result that is longer than expected fails its job and leaves nothing", arguments: ["denoise", "trim"])
  func longResult(kind: String) async throws {
    let keyed = try KeyedBench(
      KeyedBench.lines(limits: ["stored_bytes": 60_000]),
      script: "finish; case $command in denoise | trim) head -c 60000 /dev/zero >> $output ;; esac"
    ) { $0.takesInShortUploads = true }
    let id = try await keyed.recording()
    let before = try stored(keyed)
    let body = kind == "trim" ? "{\"start\":0,\"end\":0.5}" : ""
    let made = try await keyed.respond(.post, "/v1/recordings/\(id)/\(kind)", body: body)
    #expect(made.status == .accepted)
    let job = try await keyed.bench.finished(#require(JobID(try await KeyedBench.member("id", of: made))))
    let error = RowJSON.value(JobError.self, from: job.error)
    #expect(job.state == .failed && error?.code == "limit_stored_bytes" && error?.status == 413)
    #expect(try keyed.bench.catalog.recordings(limit: 9).map(\.id) == [id])
    #expect(try stored(keyed) == before && before == bytesOnDisk(keyed))
    #expect(try keyed.bench.catalog.of(ours).usage().expectedBytes == 0)
    await keyed.bench.runner.stop()
  }

  @Test("a conversion that is longer than expected answers 413 and leaves nothing")
  func longConversion() async throws {
    let keyed = try KeyedBench(
      KeyedBench.lines(limits: ["stored_bytes": 60_000]),
      script: "finish; case $command in convert) head -c 60000 /dev/zero >> $output ;; esac"
    ) { $0.takesInShortUploads = true }
    let id = try await keyed.recording()
    let before = try stored(keyed)
    try await says(try await keyed.respond(.get, "/v1/recordings/\(id)/audio?format=flac"))
    #expect(try stored(keyed) == before && before == bytesOnDisk(keyed))
    await keyed.bench.runner.stop()
  }

  @Test("if a waveform or working copy turns out not to fit, its job fails and only the original stays")
  func longWaveform() async throws {
    // With a limit on running jobs, the waveform is built by a job of its own.
    let keyed = try KeyedBench(
      KeyedBench.lines(limits: ["stored_bytes": 60_000, "running_jobs": 1]),
      script: """
        finish
        case $command in waveform) head -c 60000 /dev/zero >> $pyramid; member soundMap; echo map > "$value" ;; esac
        """)
    let id = try await keyed.recording()
    let job = try #require(try keyed.bench.catalog.recording(id)?.waveformJob)
    let error = RowJSON.value(JobError.self, from: try await keyed.bench.finished(job).error)
    #expect(error?.code == "limit_stored_bytes")
    let recording = try #require(try keyed.bench.catalog.recording(id))
    #expect(recording.waveformState == .failed && recording.waveformKey == nil && recording.audioKey != nil)
    #expect(try stored(keyed) == 4)
    #expect(try bytesOnDisk(keyed) == 4)
    #expect(try await keyed.status(.get, "/v1/recordings/\(id)/audio") == 200)
    await keyed.bench.runner.stop()
  }

  @Test("a tenant that has more than a lowered limit keeps what it has, can delete it, and can add nothing")
  func loweredLimit() async throws {
    let keyed = try bench(["stored_bytes": 1e6], resultsBelow: 10)
    let id = try await keyed.recording()
    #expect(try await keyed.status(.get, "/v1/recordings/\(id)/audio?format=flac") == 200)
    try keyed.replaceKeys(KeyedBench.lines(limits: ["stored_bytes": 5]))
    try await says(try await keyed.respond(.post, "/v1/recordings", body: "R"))
    try await says(try await keyed.respond(.post, "/v1/recordings/\(id)/denoise"))
    try await says(try await keyed.respond(.get, "/v1/recordings/\(id)/audio?format=mp3"))
    #expect(try await keyed.status(.get, "/v1/recordings/\(id)/audio?format=flac") == 200)
    #expect(try await keyed.status(.get, "/v1/recordings/\(id)/audio") == 200)
    #expect(try await keyed.status(.patch, "/v1/recordings/\(id)", body: "{\"name\":\"x\"}") == 200)
    #expect(try await keyed.status(.delete, "/v1/recordings/\(id)") == 204)
    #expect(try stored(keyed) == 0)
    await keyed.bench.runner.stop()
  }
}
