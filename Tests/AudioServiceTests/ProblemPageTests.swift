import Contract
import Foundation
import HTTP
import Testing
import Workers

@testable import AudioService
@testable import Jobs

/// Every code that a client may receive is explained at the problem's `type`.
@Suite struct ProblemPageTests {
  private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()

  /// The text before a string that is a code, and a prefix of that code.
  private static let places: [(before: String, prefix: String)] = [
    ("code:", ""), ("ode =", ""), ("code ??", ""), ("unwritableProblem(", ""), ("unreadyProblem(", ""),
    ("problem(of:", "limit_"),
    ("limitProblem(", "limit_"),
    ("limitReached(", "limit_"), ("Problem(", ""),
  ]

  /// Codes that aren't problems: a warning, and a worker's answer that the service acts on.
  private static let warnings: Set = ["waveform_damaged", "needs_ffmpeg"]
  private static let filesOfWarnings: Set = [
    "Warnings.swift", "Warning+Result.swift", "Warning+Tags.swift", "ImportRecording.swift", "FenceSupport.swift",
    "ReadinessWarning.swift", "ReadEmbeddedLabels.swift", "Scrub.swift",
  ]

  /// Returns the codes in a source file: the strings at those places, and the names of limits.
  private static func codes(in text: String) -> [String] {
    let pieces = text.split(separator: "\"", omittingEmptySubsequences: false)
    return pieces.indices.dropFirst().compactMap { index in
      let word = pieces[index]
      guard !word.isEmpty, word.utf8.allSatisfy({ $0 == 0x5F || (0x61...0x7A).contains($0) || $0 &- 0x30 < 10 }) else {
        return nil
      }
      let before = pieces[index - 1].trimmingCharacters(in: .whitespacesAndNewlines)
      if before.hasSuffix("Warning(code:") { return nil }
      if let place = places.first(where: { before.hasSuffix($0.before) }) { return place.prefix + word }
      let isName = ["name:", "name =", "limit:"].contains { before.hasSuffix($0) }
      return isName && word.hasPrefix("waiting_") ? "limit_\(word)" : nil
    }
  }

  /// The texts of some modules' files, by the files' names.
  private static func sources(_ modules: [String]) throws -> [String: String] {
    var sources: [String: String] = [:]
    for module in modules {
      let folder = root.appendingPathComponent("Sources/\(module)")
      for path in try FileManager.default.subpathsOfDirectory(atPath: folder.path) where path.hasSuffix(".swift") {
        sources[(path as NSString).lastPathComponent] = try String(
          contentsOf: folder.appendingPathComponent(path), encoding: .utf8)
      }
    }
    return sources
  }

  private static func codes() throws -> [String: String] {
    var codes: [String: String] = [:]
    for (name, text) in try sources(["HTTP", "Media", "AudioService", "Jobs", "Workers", "Processing"])
    where !filesOfWarnings.contains(name) {
      for code in Self.codes(in: text) where !warnings.contains(code) { codes[code] = name }
    }
    return codes
  }

  @Test func problemsAreMadeInTheTablesAlone() throws {
    let files = try Self.sources(["HTTP", "AudioService"]).filter { $0.value.contains(/\bProblem\(/) }.keys
    #expect(
      files.sorted() == [
        "ErrorResponses+Access.swift", "ErrorResponses+Requests.swift", "ErrorResponses.swift", "HTTPProblems.swift",
      ])
  }

  @Test func everyCodeInTheSourceIsExplained() throws {
    let codes = try Self.codes()
    // Checks that the patterns work.
    for known in [
      "not_found", "malformed_request", "audio_damaged", "catalog_busy", "limit_waiting_probes", "limit_open_uploads",
      "limit_queued_jobs", "limit_waiting_pictures", "disk_unwritable", "worker_missing", "too_many_pixels", "stalled",
    ] { #expect(codes[known] != nil, "\(known) isn't found in the source") }
    for (code, file) in codes {
      #expect(ProblemKind.all[code] != nil, "\(code) of \(file) has no entry in problems.txt")
    }
    #expect(Set(ProblemKind.all.keys).subtracting(codes.keys) == [], "explained, but in no source")
  }

  @Test func theContractListsEveryCodeThatIsExplained() throws {
    let listed = try OpenAPIDocument.shared.get().problemCodes
    #expect(listed == ProblemKind.all.keys.sorted())
  }

  @Test func everyProblemTypeLinksToItsExplanation() async throws {
    let bench = try TestBench()
    for kind in ProblemKind.all.values {
      let type = Problem(.badRequest, code: kind.code, detail: "").type
      let page = try await bench.respond(.get, type)
      let html = String(decoding: try await page.body.collect(), as: UTF8.self)
      #expect(page.status == .ok && page.fields["Content-Type"] == "text/html; charset=utf-8", "\(type)")
      #expect(html.contains("<code>\(kind.code)</code>") && html.contains(kind.remedy.prefix(20)))
      let document = try await bench.respond(.get, type, fields: ["Accept": "application/json"])
      #expect(
        document.fields["Content-Type"] == "application/json" && document.fields["Vary"]?.contains("Accept") == true)
      let json = String(decoding: try await document.body.collect(), as: UTF8.self)
      #expect(json.contains("\"type\":\"\(type)\"") && json.contains("\"code\":\"\(kind.code)\""))
      #expect(
        kind.meaning.hasSuffix(".") && kind.remedy.hasSuffix(".") && !kind.title.hasSuffix("."))
    }
  }

  @Test func problemsAndFailedJobsLinkToTheirExplanation() async throws {
    let bench = try TestBench(script: "failure unsupported_media false")
    let answer = try await bench.respond(.get, "/v1/recordings/nonsense")
    let text = String(decoding: try await answer.body.collect(), as: UTF8.self)
    #expect(text.hasPrefix("{\"type\":\"/problems/not_found\","))
    let recording = try bench.recording(state: .failed)
    let begun = try await bench.respond(.post, "/v1/recordings/\(recording.id)/waveform")
    #expect(begun.status == .accepted)
    let job = try #require(try bench.catalog.jobs(limit: 1).first)
    _ = try await bench.finished(job.id)
    let ended = try await bench.respond(.get, "/v1/jobs/\(job.id)")
    let document = String(decoding: try await ended.body.collect(), as: UTF8.self)
    #expect(document.contains("\"type\":\"/problems/unsupported_media\""))
  }

  @Test func anUnknownCodeIsNotFound() async throws {
    let bench = try TestBench()
    for code in ["nonsense", "%3Cscript%3E", "NOT_FOUND"] {
      #expect(try await bench.respond(.get, "/problems/\(code)").status == .notFound)
    }
    #expect(
      try await bench.respond(.get, "/problems/not_found", fields: ["Accept": "*/*;q=0"]).status == .notAcceptable)
  }
}
