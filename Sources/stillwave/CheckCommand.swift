import ArgumentParser
import AudioService
import FoundationEssentials
import Glibc
import Storage
import Waveform

struct CheckCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "check",
    abstract: "Finds what is wrong in a data folder, and repairs it.",
    discussion: """
      Compares the catalog with the recordings' folders: their descriptions, lengths, hashes and waveforms. It changes \
      nothing and may run while the service does; anything suspicious is checked a second time before it is reported.

      With --repair, which needs the service stopped, a lost or damaged catalog is rebuilt from the folders and from \
      what can still be read of it, and the old one is moved aside. Missing rows and descriptions are written again, \
      waveforms are rebuilt at the next start, and files that nothing explains are moved to “orphaned”. Audio is never \
      removed. If root runs the repair, it works as the user who owns the data folder. The folder that several \
      machines share as --media has no catalog and is refused. The exit status is 0 only if nothing is wrong \
      afterward.
      """)

  @OptionGroup var folder: DataFolderOptions

  @Flag(help: "Repair what can be repaired.")
  var repair = false

  @Flag(help: "Compare only the lengths of audio files, not their hashes: doesn't read them.")
  var quick = false

  @Flag(help: "Print one JSON object instead of lines.")
  var json = false

  private struct Answer: Encodable {
    let ok: Bool
    let recordings, files: Int
    let bytes: Int64
    let repaired: [String]
    let problems, notes: [DataCheck.Finding]
  }

  func run() throws {
    let path = try folder.path()
    umask(0o077)
    guard unsafe access(path, F_OK) == 0 else { throw ValidationError("There is no folder \(path).") }
    try DataFolderOptions.run { display in
      try MediaStore(lookingAt: path).checkIsDataFolder()
      var (store, repaired) = (MediaStore(lookingAt: path), [String]())
      if repair {
        try DataFolderOptions.becomeOwner(of: path)
        store = try MediaStore(directory: path)
        try store.claim()
        repaired = try DataRepair(store, pyramidFault: Self.fault).run()
      }
      let report = try DataCheck(store, readsAudio: !quick, pyramidFault: Self.fault).run { share in
        display.show(share: share)
      }
      StandardStreams.write(try text(report, repaired))
      return report.isSound
    }
  }

  /// Returns what is wrong with a waveform's file; nil if it's intact.
  @Sendable private static func fault(_ path: String) -> String? {
    do {
      try PyramidFile(path: path).verify()
      return nil
    } catch {
      return Service.words(forFailedStart: error)
    }
  }

  private func text(_ report: DataCheck.Report, _ repaired: [String]) throws -> [UInt8] {
    if json {
      let encoder = JSONEncoder()
      encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
      let answer = Answer(
        ok: report.isSound, recordings: report.recordings, files: report.files, bytes: report.bytes, repaired: repaired,
        problems: report.problems, notes: report.notes)
      return Array(try encoder.encode(answer)) + [UInt8(ascii: "\n")]
    }
    let findings =
      report.notes.map { "note: \($0.path): \($0.detail)\n" }
      + report.problems.map { "problem: \($0.path): \($0.detail)\n" }
    let summary = "\(report.recordings) recordings, \(report.files) files, \(report.bytes) bytes; "
    let outcome = report.isSound ? "no problems\n" : "\(report.problems.count) problems\n"
    return Array((repaired.map { "repaired: \($0)\n" } + findings + [summary, outcome]).joined().utf8)
  }
}
