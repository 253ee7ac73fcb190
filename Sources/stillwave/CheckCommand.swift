import ArgumentParser
import AudioService
import FoundationEssentials
import Glibc
import Storage
import Waveform

struct CheckCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "check",
    abstract: "Finds what is wrong in a data folder, and repairs it; or in what several machines share.",
    discussion: """
      Compares the catalog with the recordings' files: their descriptions, lengths, hashes and waveforms. It changes \
      nothing and may run while the service does; anything suspicious is checked a second time before it is reported.

      With --repair, which needs the service stopped, a lost or damaged catalog is rebuilt from the folders and from \
      what can still be read of it, and the old one is moved aside. Rows that are lost are listed. Missing rows and \
      descriptions are written again, waveforms are rebuilt at the next start, and files that nothing explains are \
      moved to “orphaned”. Audio is never removed. If root runs the repair, it works as the user who owns the data \
      folder.

      With --catalog and --media, it compares the catalog and the folder or the bucket that several machines share, for \
      instance after both were restored from backups; settings and variables of the bucket are those of “serve”. It \
      reads every object of a bucket, or with --quick only descriptions and waveforms, and then lists the bucket to \
      find objects that no row names. It needs room for one waveform in the folder for temporary files (TMPDIR).

      The first 1,000 findings of each kind are listed, and all are counted. The exit status is 0 only if nothing was \
      lost and nothing is wrong afterward.
      """)

  @OptionGroup var folder: DataFolderOptions
  @OptionGroup(title: "Several machines") var shared: SettingFlags<SharedSettings>

  @Flag(help: "Repair what can be repaired.")
  var repair = false

  @Flag(help: "Compare only the lengths of sounds, not their hashes: doesn't read them.")
  var quick = false

  @Flag(help: "Print one JSON object instead of lines.")
  var json = false

  @OptionGroup var style: ProgressOptions

  private struct Answer: Encodable {
    let ok: Bool
    let recordings, files: Int
    let bytes: Int64
    let repaired, lost: [String]
    let problems, notes: [DataCheck.Finding]
    let problemCounts, noteCounts: [String: Int]
  }

  func run() throws {
    umask(0o077)
    if let storage = try sharedStorage() {
      return try DataFolderOptions.run(showing: style) { display in
        let report = try storage.check(readsAudio: !quick, pyramidFault: Self.fault) { display.show(share: $0) }
        StandardStreams.write(try text(report))
        return report.isSound
      }
    }
    let path = try folder.path()
    guard unsafe access(path, F_OK) == 0 else { throw ValidationError("There is no folder \(path).") }
    try DataFolderOptions.run(asOwnerOf: repair ? path : nil, showing: style) { display in
      try MediaStore(lookingAt: path).checkIsDataFolder()
      var (store, repaired) = (MediaStore(lookingAt: path), DataRepair.Outcome())
      if repair {
        store = try MediaStore(directory: path)
        try store.claim()
        repaired = try DataRepair(store, pyramidFault: Self.fault).run()
      }
      let report = try DataCheck(readsAudio: !quick, pyramidFault: Self.fault).run(in: store) { share in
        display.show(share: share)
      }
      StandardStreams.write(try text(report, repaired))
      return report.isSound && repaired.lost.isEmpty
    }
  }

  /// The storage of several machines, if it is to be checked.
  private func sharedStorage() throws -> SharedStorage? {
    if folder.data != nil {
      guard shared.given.isEmpty else { throw ValidationError("Name a data folder, or a catalog and media; not both.") }
      return nil
    }
    let storage: SharedStorage?
    do throws(SettingError) { storage = try SharedStorage(flags: shared.given, variable: environmentVariable) } catch {
      throw ValidationError(error.description)
    }
    if storage != nil, repair { throw ValidationError("--repair is for the data folder of one machine.") }
    return storage
  }

  /// Returns what is wrong with a waveform's file; nil if it's intact.
  @Sendable static func fault(_ path: String) -> String? {
    do {
      try PyramidFile(path: path).verify()
      return nil
    } catch {
      return Service.words(forFailedStart: error)
    }
  }

  private func text(_ report: DataCheck.Report, _ repaired: DataRepair.Outcome = .init()) throws -> [UInt8] {
    let isSound = report.isSound && repaired.lost.isEmpty
    if json || style.progress == .json {
      let encoder = JSONEncoder()
      encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
      encoder.keyEncodingStrategy = .convertToSnakeCase
      let answer = Answer(
        ok: isSound, recordings: report.recordings, files: report.files, bytes: report.bytes, repaired: repaired.done,
        lost: repaired.lost, problems: report.problems, notes: report.notes, problemCounts: report.foundProblems.counts,
        noteCounts: report.foundNotes.counts)
      return Array(try encoder.encode(answer)) + [UInt8(ascii: "\n")]
    }
    let findings = report.foundNotes.lines("note") + report.foundProblems.lines("problem")
    let lost = repaired.lost.isEmpty ? "" : ", and rows are lost"
    let outcome = (report.isSound ? "no problems" : "\(report.foundProblems.count) problems") + lost
    let summary = "\(report.recordings) recordings, \(report.files) files, \(report.bytes) bytes; \(outcome)"
    let lines = repaired.done.map { "repaired: \($0)" } + repaired.lost.map { "lost: \($0)" } + findings + [summary]
    return Array(lines.map { $0 + "\n" }.joined().utf8)
  }
}
