import Glibc
import HTTP
import Storage
import Testing

@testable import AudioService
@testable import Jobs

@Suite struct ConversionsTests {
  private func ask(_ format: String, channels: Int, sampleRate: Int = 1000) async throws -> (HTTPResponse, TestBench) {
    let bench = try TestBench()
    let source = try bench.recording()
    try bench.catalog.update(source.id) {
      $0.format.channels = channels
      $0.format.sampleRate = sampleRate
    }
    return (try await bench.respond(.get, "/v1/recordings/\(source.id)/audio?format=\(format)"), bench)
  }

  @Test("up to eight channels are mixed down to MP3's two", arguments: [1, 2, 3, 8])
  func mixed(channels: Int) async throws {
    #expect(try await ask("mp3", channels: channels).0.status == .ok)
  }

  @Test(
    "channels that the format can't hold are rejected at once",
    arguments: [("mp3", 9), ("mp3", 16), ("opus", 9), ("flac", 9), ("ogg", 9)])
  func refused(format: String, channels: Int) async throws {
    let (response, bench) = try await ask(format, channels: channels)
    let text = String(decoding: try await response.body.collect(), as: UTF8.self)
    #expect(response.status.code == 422 && text.contains("\"code\":\"unsupported_output\""), "\(text)")
    #expect(text.contains("\"parameter\":\"format\"") && text.contains("\(channels)") && text.contains("wav can"))
    #expect(try bench.catalog.jobs(limit: 1).isEmpty)
  }

  @Test(
    "a kept conversion that can't be had now is an error, and isn't made again",
    arguments: [
      StorageError.diskFull, .io(operation: "open", path: "cache", errno: EMFILE), .objectStore(detail: "denied"),
      .storeUnreachable(detail: "no answer"), .storeFull,
    ])
  func unavailable(error: StorageError) async throws {
    let (bench, blobs) = try TestBench.failingStore()
    let source = try bench.recording()
    let request = { try await bench.respond(.get, "/v1/recordings/\(source.id)/audio?format=flac") }
    #expect(try await request().status == .ok)
    let key = try #require(try bench.catalog.conversion(of: source.id, to: "flac")?.key)
    let jobs = try bench.catalog.jobs(limit: 10).count
    blobs.fetching.withLock { $0 = (error, nil) }
    #expect(throws: error) { try blobs.localFile(key) }
    await withKnownIssue(isIntermittent: true) {
      let status = try? await request().status.code
      #expect(status ?? 0 >= 500)
    } matching: {
      // The bench records each answer with 500.
      $0.error as? StorageError == error
    }
    blobs.fetching.withLock { $0 = nil }
    #expect(try await request().status == .ok)
    #expect(try bench.catalog.conversion(of: source.id, to: "flac")?.key == key)
    #expect(try bench.catalog.jobs(limit: 10).count == jobs)
  }

  @Test("a kept conversion that is damaged is made again")
  func damaged() async throws {
    let (bench, blobs) = try TestBench.failingStore()
    let source = try bench.recording()
    let request = { try await bench.respond(.get, "/v1/recordings/\(source.id)/audio?format=flac") }
    #expect(try await request().status == .ok)
    let key = try #require(try bench.catalog.conversion(of: source.id, to: "flac")?.key)
    let jobs = try bench.catalog.jobs(limit: 10).count
    blobs.fetching.withLock { $0 = (.damagedObject(key: "\(key)"), nil) }
    #expect(try await request().status == .ok)
    #expect(try bench.catalog.conversion(of: source.id, to: "flac")?.key != key)
    #expect(try bench.catalog.jobs(limit: 10).count == jobs + 1)
  }
}
