import Foundation

/// Rows of the table that compares the service with nginx under load.
struct ComparedLoad {
  let server: Server
  let nginx: Nginx
  /// nginx's folder.
  let root: String
  private(set) var failures = 0

  init(server: Server, nginx: Nginx, root: String) {
    (self.server, self.nginx, self.root) = (server, nginx, root)
  }

  struct Row {
    enum Requests {
      case same(String)
      case distinct(DistinctWindows)
      /// Ranges of a target; nginx sends those of a file in its folder.
      case ranges(RandomRanges, of: String, file: String)
    }

    let name: String
    let requests: Requests
    let connections: Int
    let goal: Goal
    /// Fields of each request, such as `Accept-Encoding: gzip`.
    var fields: [String] = []
  }

  /// The bounds of a row; nil for none.
  struct Goal {
    /// The least rate of requests, as a multiple of nginx's.
    var rate: Double?
    /// The most processor time per request.
    var microseconds: Double?
    /// The most latency in 99 % of the requests, as a multiple of nginx's.
    var tail: Double?
  }

  private static let rounds = 5
  private static let secondsPerRound = 3

  static func printHead(_ version: String) {
    print("\nHTTP, Stillwave / nginx \(version) with files of the same size: medians of \(rounds) runs in turn, and")
    print("their range. Both log to a file. Up to “cached slice”, no window is requested twice.\n")
    print(line(["response, connections", "requests/s", "ratio", "CPU µs", "", "p99 ms", "ratio"]))
  }

  private struct Figures {
    var requests: [Double] = []
    var microseconds: [Double] = []
    var p99: [Double] = []

    mutating func add(
      _ row: Row, port: UInt16, target: String, script: [String], processorSeconds: () -> Double
    ) throws {
      let before = processorSeconds()
      let load = try Wrk(
        port: port, target: target, connections: row.connections, seconds: secondsPerRound, fields: row.fields,
        script: script)
      let spent = processorSeconds() - before
      guard load.errors == 0 else { throw BenchmarkFailure(what: "\(load.errors) errors at \(target) \(script)") }
      requests.append(load.requestsPerSecond)
      microseconds.append(spent / load.requests * 1e6)
      p99.append(load.p99)
    }
  }

  /// Measures and prints a row. Returns the processor time per request, in microseconds.
  @discardableResult
  mutating func run(_ row: Row) throws -> Double {
    let file = try saveExample(of: row)
    var (ours, theirs) = (Figures(), Figures())
    for round in 0..<Self.rounds {
      var (target, ourScript, theirScript): (String, [String], [String]) = ("/", [], [])
      switch row.requests {
      case .same(let same): target = same
      case .distinct(let windows):
        let number = row.connections * 10 + round
        ourScript = try windows.script(round: number)
        theirScript = try windows.script(round: number, file: file)
      case .ranges(let ranges, let whole, _):
        target = whole
        ourScript = try ranges.script(round: round)
        theirScript = ourScript
      }
      try ours.add(
        row, port: server.client.port, target: target, script: ourScript,
        processorSeconds: { Processes.processorSecondsWithChildren(server.processIdentifier) })
      try theirs.add(
        row, port: nginx.port, target: "/\(file)", script: theirScript,
        processorSeconds: { Processes.processorSeconds(nginx.processes) })
    }
    show(row, ours, theirs)
    return median(ours.microseconds)
  }

  /// Stores a response for nginx, of middle size if there are several kinds, and returns the file's name.
  private func saveExample(of row: Row) throws -> String {
    let targets: [String]
    switch row.requests {
    case .same(let target): targets = [target]
    case .distinct(let windows): targets = windows.examples
    case .ranges(_, _, let file): return file
    }
    let bodies = try targets.map { target in
      let answer = try server.client.get(target, fields: row.fields)
      guard answer.status == 200 else { throw BenchmarkFailure(what: "\(target) was answered \(answer.status)") }
      return answer.body
    }
    let file = "example-\(row.name.filter(\.isLetter))"
    let body = bodies.sorted { $0.count < $1.count }[bodies.count / 2]
    try Data(body).write(to: URL(fileURLWithPath: "\(root)/\(file)"))
    return file
  }

  private mutating func show(_ row: Row, _ ours: Figures, _ theirs: Figures) {
    let rates = zip(ours.requests, theirs.requests).map { $0 / $1 }
    let rate = median(ours.requests) / median(theirs.requests)
    let cost = median(ours.microseconds)
    let tail = median(ours.p99) / median(theirs.p99)
    var missed: [String] = []
    if let goal = row.goal.rate, rate < goal { missed.append("requests/s") }
    if let goal = row.goal.microseconds, cost > goal { missed.append("CPU") }
    if let goal = row.goal.tail, tail > goal { missed.append("p99") }
    let columns = [
      "\(row.name), \(row.connections)",
      "\(Int(median(ours.requests))) / \(Int(median(theirs.requests)))",
      "\(rounded(rate)) (\(range(rates))\(goal("≥", row.goal.rate)))",
      "\(rounded(cost)) / \(rounded(median(theirs.microseconds)))",
      "(\(range(ours.microseconds))\(goal("≤", row.goal.microseconds)))",
      "\(rounded(median(ours.p99))) / \(rounded(median(theirs.p99)))",
      "\(rounded(tail))\(goal("≤", row.goal.tail))",
    ]
    let verdict = missed.isEmpty ? "ok" : "MISSED: " + missed.joined(separator: ", ")
    print(Self.line(columns) + verdict)
    fflush(nil)
    failures += missed.count
  }

  private static func line(_ columns: [String]) -> String {
    zip(columns, [34, 18, 32, 16, 30, 16, 18]).map { $0.padded($1) }.joined()
  }

  private func goal(_ sign: String, _ bound: Double?) -> String {
    guard let bound else { return "" }
    return ", goal \(sign) \(rounded(bound))"
  }

  private func range(_ values: [Double]) -> String { "\(rounded(values.min() ?? 0))–\(rounded(values.max() ?? 0))" }
}

extension String {
  /// The text padded with spaces to a column.
  func padded(_ width: Int) -> String { self + String(repeating: " ", count: max(1, width - count)) }
}
