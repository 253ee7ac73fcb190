import Foundation
import PresentRows
import Testing

@testable import Storage

// What a start does with the parts of resumable uploads.
extension ReconciliationTests {
  @Test("the part of a finished upload is set aside if its recording's audio is missing")
  func finishedWithoutAudio() throws {
    let (upload, id) = try finishedPart()
    try FileSystem.remove(store.folder(of: id))
    #expect(start().orphans == 1)
    #expect(try folder.contents(of: "data/orphaned") == ["\(upload).part"])
  }

  /// Makes an upload that has become a recording, and whose part has not been removed yet.
  private func finishedPart() throws -> (upload: UploadID, recording: RecordingID) {
    let upload = try part("abc")
    try catalog.insert(Upload(id: upload, length: 3, expiresAt: .now), limits: UploadLimits(total: 9, perClient: 9))
    let id = RecordingID()
    let whole = try #require(try store.openPart(of: upload))
    let stored = try store.objects.adopt(whole, as: id, name: "audio.wav")
    try catalog.insert(recording(stored, id: id), jobs: [], finishing: upload, expiresAt: .now)
    return (upload, id)
  }

  func part(_ text: String) throws -> UploadID {
    let id = UploadID()
    try store.makePart(of: id).append(Array(text.utf8).span)
    return id
  }

  @Test("parts of open uploads stay; empty or ended ones are removed; bytes without a row are set aside")
  func parts() throws {
    let (open, ended, empty, lost) = (try part("abc"), try part("abc"), try part(""), try part("abc"))
    for id in [open, ended] {
      try catalog.insert(Upload(id: id, length: 9, expiresAt: .now), limits: UploadLimits(total: 9, perClient: 9))
    }
    try catalog.deleteUpload(ended)
    let report = start()
    #expect(report.uploads == 2 && report.orphans == 1 && report.failures == [])
    #expect(try folder.contents(of: "data/uploads") == ["\(open).part"])
    #expect(try folder.contents(of: "data/orphaned") == ["\(lost).part"])
    _ = empty
  }

  @Test("a crash before an upload's recording has a row loses the folder but no bytes", arguments: [true, false])
  func crashBeforeTheRow(catalogKnowsTheUpload: Bool) throws {
    let id = try part("abc")
    if catalogKnowsTheUpload {
      try catalog.insert(Upload(id: id, length: 3, expiresAt: .now), limits: UploadLimits(total: 9, perClient: 9))
    }
    let whole = try #require(try store.openPart(of: id))
    _ = try store.objects.adopt(whole, as: RecordingID(), name: "audio.wav")
    let report = start()
    #expect(report.recordings == 1 && report.uploads == 0 && report.failures == [])
    #expect(try read(store.directory + (catalogKnowsTheUpload ? "/uploads/" : "/orphaned/") + "\(id).part") == "abc")
  }

  @Test("the part of an upload that became a recording is removed, and the recording stays")
  func finishedUpload() throws {
    let id = try finishedPart().recording
    #expect(start().uploads == 1)
    #expect(try files(of: id) == ["audio.wav", "recording.json"])
  }
}
