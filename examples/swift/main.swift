// Cleans a file with URLSession:
//
//   swiftc -O main.swift -o clean && ./clean talk.wav clean.flac

import Foundation

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

struct Problem: Error, Decodable { let code: String, detail: String }

struct Job: Decodable {
  struct Result: Decodable { let recording: String? }
  let id: String, state: String, progress: Double
  let result: Result?
  let error: Problem?
}

struct Recording: Decodable { let id: String }

struct Stillwave {
  let url: URL
  let key: String?
  let session = URLSession(configuration: .ephemeral)

  func request(_ method: String, _ path: String, json: [String: String]? = nil) throws -> URLRequest {
    var request = URLRequest(url: URL(string: path, relativeTo: url)!)
    request.httpMethod = method
    if let key { request.setValue("Bearer \(key)", forHTTPHeaderField: "Authorization") }
    if let json {
      request.setValue("application/json", forHTTPHeaderField: "Content-Type")
      request.httpBody = try JSONEncoder().encode(json)
    }
    return request
  }

  /// Throws the service's problem if the response is a refusal.
  func checked(_ answer: (Data, URLResponse)) throws -> Data {
    guard let status = (answer.1 as? HTTPURLResponse)?.statusCode, (200..<300).contains(status) else {
      throw try JSONDecoder().decode(Problem.self, from: answer.0)
    }
    return answer.0
  }

  func upload(_ file: URL) async throws -> Recording {
    let name = file.lastPathComponent.addingPercentEncoding(withAllowedCharacters: .alphanumerics)!
    let data = try checked(await session.upload(for: request("POST", "/v1/recordings?name=\(name)"), fromFile: file))
    return try JSONDecoder().decode(Recording.self, from: data)
  }

  /// Starts a job that cleans a recording, and waits for it. Returns the result's ID.
  func denoise(_ recording: String, format: String) async throws -> String {
    let path = "/v1/recordings/\(recording)/denoise"
    var job = try JSONDecoder().decode(
      Job.self, from: checked(await session.data(for: request("POST", path, json: ["format": format]))))
    while job.state == "queued" || job.state == "running" {
      job = try JSONDecoder().decode(
        Job.self, from: checked(await session.data(for: request("GET", "/v1/jobs/\(job.id)?wait=20"))))
      print("cleaning \(Int(100 * job.progress)) %")
    }
    if let error = job.error { throw error }
    return job.result!.recording!
  }

  func download(_ recording: String, to file: URL) async throws {
    let (place, response) = try await session.download(for: request("GET", "/v1/recordings/\(recording)/audio"))
    guard (response as? HTTPURLResponse)?.statusCode == 200 else { throw URLError(.badServerResponse) }
    try? FileManager.default.removeItem(at: file)
    try FileManager.default.moveItem(at: place, to: file)
  }
}

let environment = ProcessInfo.processInfo.environment
let arguments = CommandLine.arguments.dropFirst().map { URL(fileURLWithPath: $0) }
let service = Stillwave(
  url: URL(string: environment["STILLWAVE_URL"] ?? "http://127.0.0.1:8080")!, key: environment["STILLWAVE_KEY"])
do {
  let recording = try await service.upload(arguments[0])
  let clean = try await service.denoise(recording.id, format: arguments[1].pathExtension)
  try await service.download(clean, to: arguments[1])
  print(clean)
} catch let problem as Problem {
  FileHandle.standardError.write(Data("\(problem.code): \(problem.detail)\n".utf8))
  exit(1)
}
