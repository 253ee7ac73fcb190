extension DataCheck {
  /// Something that is wrong.
  package struct Finding: Sendable, Equatable, Codable {
    /// A stable identifier in snake_case: "audio_missing".
    package var code: String
    /// The path of the file or folder in the data directory, or the key of the object in the bucket.
    package var path: String
    /// An explanation.
    package var detail: String
  }

  /// Any number of findings in limited memory: the first of each code are listed, and all are counted. A catalog of a
  /// million recordings whose bucket is empty has a million findings.
  package struct Findings: Sendable, Equatable {
    /// How many findings of one code are listed.
    package static let limit = 1000

    /// The first findings of each code, in the order in which they were found.
    package private(set) var listed: [Finding] = []
    /// How many findings there are of each code, listed or not.
    package private(set) var counts: [String: Int] = [:]

    /// Creates an empty list.
    package init() {}

    /// How many findings there are, listed or not.
    package var count: Int { counts.values.reduce(0, +) }

    /// Whether nothing was found.
    package var isEmpty: Bool { listed.isEmpty }

    /// How many findings of each code aren't listed, by code.
    package var unlisted: [(code: String, count: Int)] {
      counts.map { (code: $0.key, count: $0.value - Self.limit) }.filter { $0.count > 0 }.sorted { $0.code < $1.code }
    }

    /// Adds a finding.
    package mutating func add(_ finding: Finding) {
      let earlier = counts[finding.code, default: 0]
      if earlier < Self.limit { listed.append(finding) }
      counts[finding.code] = earlier + 1
    }

    /// Adds other findings after these.
    mutating func add(_ others: Self) {
      for finding in others.listed { add(finding) }
      for (code, count) in others.unlisted { counts[code, default: 0] += count }
    }
  }
}
