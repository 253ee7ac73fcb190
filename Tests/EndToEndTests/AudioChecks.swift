import Testing

/// Compares a recording's audio as served with its file: whole, in ranges, and revalidated.
struct AudioChecks {
  let client: HTTPClient
  let path: String
  let file: [UInt8]
  let tag: String

  init(_ client: HTTPClient, _ id: String, file: [UInt8], sha256: String) throws {
    (self.client, self.file) = (client, file)
    path = "/v1/recordings/\(id)/audio"
    tag = try #require(try client.send("HEAD", "/v1/recordings/\(id)/audio")["etag"])
    #expect(tag.contains(sha256) && tag.hasPrefix("\""))
  }

  func all() throws {
    try whole()
    try ranges()
    try conditions()
  }

  private func whole() throws {
    let answer = try client.get(path)
    #expect(answer.status == 200 && answer.body == file)
    #expect(answer["accept-ranges"] == "bytes" && answer["content-length"] == "\(file.count)")
    #expect(answer["content-type"]?.hasPrefix("audio/") == true)
    #expect(answer["cache-control"] == "private, max-age=31536000, immutable")
    #expect(answer["content-disposition"] == nil)
    let head = try client.send("HEAD", path)
    #expect(head.status == 200 && head["content-length"] == "\(file.count)" && head["etag"] == tag)
    let download = try client.get("\(path)?download=1")
    #expect(download["content-disposition"]?.hasPrefix("attachment; filename=") == true && download.body == file)
  }

  private func ranges() throws {
    let last = file.count - 1
    for (range, part) in [
      ("bytes=0-0", 0...0), ("bytes=100-1999", 100...1999), ("bytes=\(last)-", last...last),
      ("bytes=-500", (file.count - 500)...last), ("bytes=1000-99999999999", 1000...last),
    ] {
      let answer = try client.get(path, ["Range": range])
      #expect(answer.status == 206, "\(range)")
      #expect(answer["content-range"] == "bytes \(part.lowerBound)-\(part.upperBound)/\(file.count)")
      #expect(answer.body == Array(file[part]), "\(range)")
    }
    for range in ["bytes=\(file.count)-", "bytes=-0"] {
      let answer = try client.get(path, ["Range": range])
      #expect(answer.status == 416 && answer["content-range"] == "bytes */\(file.count)", "\(range)")
    }
    // An invalid range is ignored (RFC 9110 §14.2).
    for range in ["bytes=9-1", "seconds=1-2", "bytes=a-b"] {
      #expect(try client.get(path, ["Range": range]).status == 200, "\(range)")
    }
  }

  private func conditions() throws {
    #expect(try client.get(path, ["If-None-Match": tag]).status == 304)
    #expect(try client.get(path, ["If-None-Match": "\"other\""]).status == 200)
    #expect(try client.get(path, ["Range": "bytes=0-9", "If-Range": tag]).status == 206)
    let changed = try client.get(path, ["Range": "bytes=0-9", "If-Range": "\"other\""])
    #expect(changed.status == 200 && changed.body == file)
    #expect(try client.get(path, ["If-Match": "\"other\""]).status == 412)
  }
}
