import Storage
import Synchronization
import Workers

/// Everything that differs between kinds of jobs. Each kind has its own file.
protocol JobDefinition {
  /// Returns the estimated work of a job for a recording with `samples` samples, counting all channels. The speeds were
  /// measured on one core of the development machine.
  static func cost(samples: Double) -> JobSchedule.Work

  /// The maximum number of threads that a worker can use.
  static var threadLimit: Int { get }

  /// Returns the recording whose waveform the job writes; nil if it writes none.
  static func writtenRecording(of job: Job) -> RecordingID?

  /// Returns the work for a worker and the file to read; nil if the parameters in the job's row can't be read.
  static func work(of attempt: JobAttempt) throws(StorageError) -> (work: WorkerRequest.Work, source: String)?

  /// Writes the files besides the source that the worker reads into the attempt's folder. Throws `.noiseProfileIsGone`
  /// if one of them can't be made.
  static func prepare(_ attempt: JobAttempt, _ catalog: Catalog, _ scratch: Scratch) throws

  /// Returns whether this node has what the job needs.
  static func suits(_ job: Job, _ settings: WorkerSettings) -> Bool

  /// Stores the result in rows and files, unless the attempt has lost its job meanwhile. Returns nil if the worker's
  /// report is for a different kind of work.
  static func record(_ outcome: JobOutcome) throws(StorageError) -> Fenced<Job>?
}

extension JobDefinition {
  static func prepare(_ attempt: JobAttempt, _ catalog: Catalog, _ scratch: Scratch) throws {}

  static func suits(_ job: Job, _ settings: WorkerSettings) -> Bool { true }
}

extension JobKind {
  /// The definition of this kind.
  var definition: any JobDefinition.Type {
    switch self {
    case .waveform: WaveformJob.self
    case .denoise: DenoiseJob.self
    case .convert: ConvertJob.self
    case .loudness: LoudnessJob.self
    case .trim: TrimJob.self
    }
  }
}

/// One attempt at a job, and the locations of its files. Each attempt writes new files in the job's folder, because
/// files of earlier attempts may still be mapped, or even written.
struct JobAttempt: Sendable {
  let job: Job
  let token: AttemptToken
  var source: Recording
  /// The key of the source's original file.
  let audio: ObjectKey
  let files: SourceFiles
  let folder: String

  /// Returns the path of the source's original file, which may have to be fetched.
  func original() throws(StorageError) -> String { try files.path(of: audio) }

  /// Returns the path of the file to read the source's audio from, and the working copy that the worker has to make of
  /// it first, if the source needs one and has none, or has lost it.
  func sound() throws(StorageError) -> (source: String, copy: WorkingCopy?) {
    if let key = source.soundKey { return (try files.path(of: key), nil) }
    return (try original(), source.mediaFacts.map { WorkingCopy($0, at: path("decoded")) })
  }

  /// Returns the path of one of this attempt's files.
  func path(_ fileExtension: String) -> String { "\(folder)/\(token.workName(fileExtension))" }
}

/// The files that an attempt reads. Each is fetched when the job's kind asks for it, and held as long as this object
/// exists: the worker opens it by its path.
final class SourceFiles: Sendable {
  private let fetch: @Sendable (ObjectKey) throws(StorageError) -> LocalFile
  private let held = Mutex<[LocalFile]>([])

  /// `fetch` returns the local file with an object. May block.
  init(_ fetch: @escaping @Sendable (ObjectKey) throws(StorageError) -> LocalFile) { self.fetch = fetch }

  /// Returns the path of the file with an object. Blocks.
  func path(of key: ObjectKey) throws(StorageError) -> String {
    let file = try fetch(key)
    held.withLock { $0.append(file) }
    return file.path
  }
}
