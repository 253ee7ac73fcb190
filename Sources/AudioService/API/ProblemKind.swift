import CViewer
import HTTP

/// What all problems with one code have in common, for responses, failed jobs, and the page at a problem's `type`.
///
/// Sources/CViewer/problems.txt has one for each code, separated by empty lines:
///
///     CODE STATUS [STATUS OF A JOB THAT FAILED WITH IT, IF IT DIFFERS]: TITLE
///     MEANING
///     REMEDY
///
/// A job's status is 4xx if the recording or the request is at fault and another attempt would end the same way, also
/// for work that exceeds the limits on memory, time or room, because these grow with the recording. It is 5xx if the
/// service is at fault.
struct ProblemKind: Sendable {
  let code: String
  let status: HTTPStatus
  let jobStatus: HTTPStatus
  /// A short title without a period.
  let title: String
  /// What happened.
  let meaning: String
  /// What the client, its user, or the operator can do about it.
  let remedy: String

  /// Every kind by its code. A test compares them with the codes in the source and with openapi.yaml.
  static let all: [String: ProblemKind] = {
    let text = unsafe String(
      decoding: UnsafeBufferPointer(start: stillwave_problems_start(), count: stillwave_problems_size), as: UTF8.self)
    let lines = text.split(separator: "\n")
    return stride(from: 0, to: lines.count, by: 3).reduce(into: [:]) { kinds, index in
      let parts = lines[index].split(separator: ":", maxSplits: 1)
      let words = parts[0].split(separator: " ")
      let statuses = words.dropFirst().compactMap { Int($0).map(HTTPStatus.init(code:)) }
      kinds[String(words[0])] = ProblemKind(
        code: String(words[0]), status: statuses[0], jobStatus: statuses[statuses.count - 1],
        title: String(parts[1].dropFirst()), meaning: String(lines[index + 1]), remedy: String(lines[index + 2]))
    }
  }()
}

extension Problem {
  /// Creates a problem of the kind that `code` names.
  init(
    _ code: String, _ detail: String, parameter: String? = nil, text: TextFault? = nil, fields: HTTPFields = [:]
  ) {
    self.init(
      ProblemKind.all[code]?.status ?? .internalServerError, code: code, detail: detail, parameter: parameter,
      text: text, fields: fields)
  }
}
