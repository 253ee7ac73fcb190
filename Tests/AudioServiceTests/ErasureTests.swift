import Foundation
import HTTP
import Storage
import Testing

@testable import AudioService

/// What is deleted is gone from the disk.
@Suite struct ErasureTests {
  /// Returns the files below a folder that contain any of these texts.
  private static func files(in folder: String, containing texts: [String]) throws -> [String] {
    try FileManager.default.subpathsOfDirectory(atPath: folder).filter { path in
      guard let bytes = FileManager.default.contents(atPath: folder + "/" + path) else { return false }
      return texts.contains { bytes.firstRange(of: Data($0.utf8)) != nil }
    }
  }

  @Test func nothingOfADeletedRecordingRemains() async throws {
    let bench = try TestBench(
      script: "case $command in convert) echo converted-marker-Qx7 > \"$output\"; "
        + "echo '{\"converted\":{\"frames\":1000}}' ;; *) finish ;; esac")
    let audio = "RIFF-audio-marker-Zk3-" + String(repeating: "w", count: 5000)
    let name = "Unmistakable Qwertz Interview Name"
    let fields: HTTPFields = ["Idempotency-Key": "k"]
    let path = try #require(
      try await bench.respond(
        .post, "/v1/recordings?name=\(name.replacing(" ", with: "%20")).wav", fields: fields, body: audio
      ).fields["Location"])
    let id = try #require(RecordingID(String(path.dropFirst("/v1/recordings/".count))))
    _ = try await bench.finished(#require(try bench.catalog.recording(id)?.waveformJob))
    #expect(try await bench.respond(.get, path + "/audio?format=mp3").status == .ok)
    let label = "a line that somebody said: Xylophonmarker"
    let track = try await bench.respond(
      .post, path + "/labels", fields: ["Content-Type": "text/vtt"],
      body: "WEBVTT\n\n00:00.000 --> 00:01.000\n\(label)\n")
    #expect(track.status == .created)
    #expect(try await bench.respond(.patch, path, body: "{\"name\":\"\(name) two.wav\"}").status == .ok)
    let kept = try bench.recording(name: "another.wav")

    let digest = try #require(try bench.catalog.recording(id)?.sha256)
    // The name is also stored in lower case, and the index of names has it in pieces.
    let texts = [
      "audio-marker-Zk3", "converted-marker-Qx7", name, name.lowercased(), "Qwertz", "qwertz", "Xylophonmarker",
      "xylophonmarker", digest,
    ]
    let data = bench.configuration.dataDirectory
    #expect(try !Self.files(in: data, containing: texts).isEmpty)
    #expect(try await bench.respond(.delete, path).status == .noContent)
    bench.context.erasure.finish()
    await bench.runner.stop()
    #expect(try Self.files(in: data, containing: texts) == [])
    #expect(try bench.catalog.recordings(limit: 9, nameContaining: "another").map(\.id) == [kept.id])
    #expect(!bench.logged.all.contains { $0.contains("Qwertz") })
  }

  @Test func theNameOfAResumableUploadIsErasedWithItsRecording() async throws {
    let bench = try TestBench()
    let client = TusClient(bench: bench)
    let name = "Unmistakable Qwertz Interview Name.wav"
    let encoded = Data(name.utf8).base64EncodedString()
    let upload = try await client.create(4, ["Upload-Metadata": "filename \(encoded)"])
    let id = try #require(try await client.patch(upload, at: 0, "RIFF").recording)
    _ = try await bench.finished(#require(try bench.catalog.recording(id)?.waveformJob))
    let texts = ["Qwertz", "qwertz", encoded]
    let data = bench.configuration.dataDirectory
    #expect(try !Self.files(in: data, containing: texts).isEmpty)
    #expect(try await bench.respond(.delete, "/v1/recordings/\(id)").status == .noContent)
    bench.context.erasure.finish()
    await bench.runner.stop()
    #expect(try Self.files(in: data, containing: texts) == [])
    // The upload itself is still known, so that the client doesn't send it again.
    let state = try await client.head(upload)
    #expect(state.status == 200 && state.fields["Upload-Metadata"] == nil && state.recording == id)
  }

  @Test func deletedTracksAndProfilesAndCanceledResultsAreErasedToo() async throws {
    let bench = try TestBench(script: "[ $command != denoise ] || exec sleep 1000; finish")
    let recording = try bench.recording()
    let path = "/v1/recordings/\(recording.id)"
    func track(_ text: String) async throws -> HTTPResponse {
      try await bench.respond(
        .post, path + "/labels", fields: ["Content-Type": "text/vtt"],
        body: "WEBVTT\n\n00:00.000 --> 00:01.000\n\(text)\n")
    }
    let (deleted, replaced) = (try await track("Alphamarker"), try await track("Betamarker"))
    let profile = try await bench.respond(
      .post, "/v1/noise-profiles", body: "{\"name\":\"Gammamarker\",\"frequencies\":[0,1],\"power_db\":[[-1,-2]]}")
    let made = try await bench.respond(.post, path + "/denoise", body: "{\"name\":\"Deltamarker.wav\"}")
    let texts = ["Alphamarker", "Betamarker", "Gammamarker", "Deltamarker", "alphamarker", "betamarker", "deltamarker"]
    bench.context.erasure.finish()
    for (response, method, body) in [
      (deleted, HTTPMethod.delete, ""), (replaced, .put, "0\t1\tother"), (profile, .delete, ""),
    ] {
      let fields: HTTPFields = ["If-Match": response.fields["ETag"] ?? "", "Content-Type": "text/plain"]
      let location = try #require(response.fields["Location"])
      let answer = try await bench.respond(method, location, fields: fields, body: body)
      #expect(answer.status.code < 300, "\(location)")
    }
    #expect(try await bench.respond(.delete, #require(made.fields["Location"])).status == .accepted)
    bench.context.erasure.finish()
    await bench.runner.stop()
    #expect(try Self.files(in: bench.configuration.dataDirectory, containing: texts) == [])
  }

  @Test func eachTenantsRecordingsAreDeletedAtItsAge() async throws {
    let keyed = try KeyedBench {
      $0.maximumAgeSeconds = 1000
      $0.tenantMaximumAges = [Tenant("ours")!: 100]
    }
    let (ours, theirs) = (try await keyed.recording(), try await keyed.recording(key: "theirs"))
    for id in [ours, theirs] {
      _ = try await keyed.bench.finished(#require(try keyed.bench.catalog.recording(id)?.waveformJob))
    }
    let retention = Retention(keyed.bench.context, keyed.bench.catalog)
    let now = Timestamp.now.milliseconds
    retention.sweepAll(at: Timestamp(milliseconds: now + 500_000))
    #expect(try keyed.bench.catalog.recording(ours) == nil)
    #expect(try keyed.bench.catalog.recording(theirs) != nil)
    retention.sweepAll(at: Timestamp(milliseconds: now + 1_500_000))
    #expect(try keyed.bench.catalog.recording(theirs) == nil)
  }
}
