import Foundation

/// Requests for random windows of recordings, no two alike, as a script for wrk, which adds the fields that it has.
struct DistinctWindows {
  /// One of several kinds of windows, all equally likely.
  struct Kind {
    /// The target up to the window, ending in `?` or `&`.
    let target: String
    /// The recording's length in seconds.
    let seconds: Double
    /// The shortest and the longest window in seconds.
    let window: ClosedRange<Double>
  }

  let kinds: [Kind]
  let folder: String

  /// A window of every kind, for a look at the responses.
  var examples: [String] {
    kinds.map { kind in
      let length = min((kind.window.lowerBound + kind.window.upperBound) / 2, kind.seconds)
      return "\(kind.target)start=0.001&end=\(length)"
    }
  }

  /// Writes the script and returns its path and arguments. Every `round` has other windows. `file`: requests this file
  /// instead, with the same windows in its query, so that the client has the same work.
  func script(round: Int, file: String? = nil) throws -> [String] {
    let path = "\(folder)/windows.lua"
    try Self.lua.write(toFile: path, atomically: true, encoding: .utf8)
    var arguments = [path, "\(round)"]
    for kind in kinds {
      let target = if let file { "/\(file)?" } else { kind.target }
      arguments += [target, "\(kind.seconds)", "\(kind.window.lowerBound)", "\(kind.window.upperBound)"]
    }
    return arguments
  }

  private static let lua = """
    \(Wrk.numberedThreads)
    local kinds = {}
    local head
    function init(args)
      math.randomseed(tonumber(args[1]) * 100 + number)
      for i = 2, #args, 4 do
        table.insert(kinds, {args[i], tonumber(args[i + 1]), tonumber(args[i + 2]), tonumber(args[i + 3])})
      end
      head = " HTTP/1.1\\r\\n"
      for name, value in pairs(wrk.headers) do head = head .. name .. ": " .. value .. "\\r\\n" end
      head = head .. "\\r\\n"
    end
    function request()
      local kind = kinds[math.random(#kinds)]
      local length = kind[3] + math.random() * (kind[4] - kind[3])
      local start = math.random() * (kind[2] - length)
      return string.format("GET %sstart=%.4f&end=%.4f%s", kind[1], start, start + length, head)
    end
    """
}
