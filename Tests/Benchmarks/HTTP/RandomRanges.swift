import Foundation

/// Requests for ranges of a file, as a script for wrk. They begin at random multiples of 32 KB, as in Chromium's
/// player. At other places, nginx would leave the last packet to Nagle's algorithm, and wait 40 ms.
struct RandomRanges {
  /// The length of each range in bytes.
  let length: Int
  /// The length of the file in bytes.
  let fileBytes: Int
  let folder: String

  /// Writes the script and returns its path and arguments. Every `round` has other places.
  func script(round: Int) throws -> [String] {
    let path = "\(folder)/ranges.lua"
    try Self.lua.write(toFile: path, atomically: true, encoding: .utf8)
    return [path, "\(round)", "\(length)", "\(fileBytes)"]
  }

  private static let lua = """
    \(Wrk.numberedThreads)
    local length, last
    local block = 32768
    function init(args)
      math.randomseed(tonumber(args[1]) * 100 + number)
      length = tonumber(args[2])
      last = tonumber(args[3]) - length
    end
    function request()
      local start = math.random(0, math.floor(last / block)) * block
      wrk.headers["Range"] = string.format("bytes=%d-%d", start, start + length - 1)
      return wrk.format()
    end
    """
}
