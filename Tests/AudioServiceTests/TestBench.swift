import Foundation
import HTTP
import PresentRows
import Terms
import Testing

@testable import AudioService
@testable import Jobs
@testable import Storage

typealias TemporaryFolder = PresentRows.TemporaryFolder

/// Runs blocking work outside of the threads that Swift's tasks share.
func blocking<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
  try await withCheckedThrowingContinuation { continuation in
    Thread.detachNewThread { continuation.resume(with: Result { try body() }) }
  }
}

/// The service's parts without a socket, in a folder of their own, with a shell script as the program.
///
/// The script has `$command`, `$source`, `$pyramid`, `$output`, `$noise`, `$regions` (and what follows them in the
/// request), `$job`, and `$attempt`, and these functions: `finish` writes the report of a successful child, `progress`
/// and `failure` write theirs, and `gate` blocks until the test opens the job's gate.
final class TestBench: Sendable {
  let folder: TemporaryFolder
  let configuration: Configuration
  let context: Context
  let catalog: Catalog
  let logged = LoggedLines()
  let responder: any HTTPResponder

  var runner: JobRunner { context.runner }
  let store: MediaStore

  init(
    script: String = "finish", in folder: TemporaryFolder? = nil, holder: LeaseHolder = LeaseHolder(),
    _ change: (inout Configuration) -> Void = { _ in },
    engine: (any SQLEngine) -> any SQLEngine = { $0 },
    objects: (FolderStore) -> any ObjectStore = { $0 }, scratch: (MediaStore) -> Scratch = { Scratch($0) }
  ) throws {
    let folder = try folder ?? TemporaryFolder()
    self.folder = folder
    var configuration = Configuration()
    configuration.dataDirectory = folder.path + "/data"
    configuration.program = folder.path + "/program"
    configuration.port = 0
    configuration.reservedDiskBytes = 0
    configuration.workerCount = 2
    configuration.retryPauseSeconds = 0.005
    // So that no test times out on a busy machine.
    configuration.conversionWaitSeconds = 1000
    // All tests start at once, on as many threads as there are cores, so minutes may pass between two steps of a test.
    // Held children must not time out meanwhile.
    configuration.childPatience = 1000
    configuration.jobSecondsPerProcessorSecond = 10_000
    change(&configuration)
    self.configuration = configuration
    try Self.writeProgram(script, folder: folder.path)

    let log = ServiceLog(logged.logger)
    let work = WorkQueue(label: "test")
    store = try MediaStore(directory: configuration.dataDirectory)
    let database = try SQLiteEngine(path: configuration.dataDirectory + "/catalog.sqlite")
    catalog = Catalog(engine: engine(database), holder: holder, clock: configuration.clock)
    context = Context(
      configuration, access: try Access(configuration) { [catalog] in catalog.time }, catalog: catalog,
      media: MediaPlaces(store, catalog, objects: objects(store.objects), scratch: scratch(store)), work: work, log: log
    )
    responder = AudioService.responder(context) { error, request in
      let problem = problem(for: error)
      log.answered(request, with: problem, for: error)
      if problem.status == .internalServerError, !StorageError.isUncertain(error) {
        Issue.record(error, "\(request.method.rawValue) \(request.target.path)")
      }
      return problem.response()
    }
  }

  private static func writeProgram(_ script: String, folder: String) throws {
    let text = #"""
      read -r request || exit
      member() {
        case $request in *"\"$1\":\""*) value=${request#*"\"$1\":\""}; value=${value%%\"*} ;; *) value= ;; esac
      }
      command=${request#*'"work":{"'}; command=${command%%\"*}
      member source; source=$value
      member pyramid; pyramid=$value
      member output; output=$value
      noise=auto
      case $request in *'"noise":'*) noise=${request#*'"noise":'}; noise="${noise%%\}*}}" ;; esac
      regions=unknown
      case $request in *'"noiseRegions":'*) regions=${request#*'"noiseRegions":'} ;; esac
      threads=${request#*'"threads":'}; threads=${threads%%,*}
      work=${pyramid%/*}; job=${work##*/}; attempt=${pyramid##*/}; attempt=${attempt%%-*}
      folder='\#(folder)'
      progress() { echo "{\"progress\":{\"fraction\":$1,\"ready_frames\":0,\"total_frames\":1000}}"; }
      failure() { echo "{\"error\":{\"code\":\"$1\",\"detail\":\"It failed.\",\"retry\":$2}}"; exit ${failed:-1}; }
      gate() { read -r line < "$folder/gate-$job$1"; }
      # Like a real probe without ffmpeg of a file that only ffmpeg can read.
      case $command$request in probe*'"ffmpeg":""'* | intake*'"ffmpeg":""'*)
        [ "$(head -c 4 "$source" | od -An -tx1 | tr -d ' ')" != 1a45dfa3 ] || failure needs_ffmpeg false ;;
      esac
      finish() {
        case $command in
          probe) echo '{"probe":{"shape":{"container":"wav","codec":"pcm_s16","sample_rate":1000,'\
      '"channels":2,"frames":1000},'\
      '"file_extension":"wav","media_type":"audio/wav","warnings":[]}}' ;;
          intake) echo x > "$pyramid"; echo '{"intake":{"probe":{"shape":{"container":"wav","codec":"pcm_s16",'\
      '"sample_rate":1000,"channels":2,"frames":1000},'\
      '"file_extension":"wav","media_type":"audio/wav","warnings":[]},'\
      '"analysis":{"frames":999,"warnings":[]}}}' ;;
          ffmpegCheck) echo '{"ffmpeg_works":true}' ;;
          waveform) echo x > "$pyramid"; echo '{"analysis":{"frames":1000,"warnings":[]}}' ;;
          convert) echo sound > "$output"; echo '{"converted":{"frames":1000}}' ;;
          loudness) echo '{"loudness":{"integrated_lufs":-20.512,"range_lu":3.25,"true_peak_dbtp":-1}}' ;;
          trim) echo x > "$pyramid"; echo sound > "$output"; echo '{"trimmed":{"frames":500,"warnings":[],"lacksPictures":false}}' ;;
          denoise) echo x > "${pyramid:-/dev/null}"; echo sound > "$output"
            echo '{"denoised":{"frames":1000,"noise":{"quantile":0.2},"link":"all",'\
      '"clipped_samples":3,"warnings":[]}}' ;;
        esac
      }
      echo "$job $attempt" >> "$folder/starts"
      \#(script)

      """#
    try text.write(toFile: folder + "/script", atomically: true, encoding: .utf8)
    let link = folder + "/program"
    if !FileManager.default.fileExists(atPath: link) {
      try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: launcher)
    }
  }

  /// The file that every bench's program links to: it runs the script next to the link. It's written once, before any
  /// child starts, because a file that is open for writing anywhere, even in a child about to call `exec`, can't be
  /// executed.
  private static let launcher: String = {
    let path = NSTemporaryDirectory() + "stillwave-service-launcher-\(getpid())"
    // Readers of samples are real, beside the test bundle. The others' script begins again for each request, also after
    // a failure that it reports.
    let bundle = Bundle.allBundles.first { $0.bundlePath.hasSuffix(".xctest") }?.bundlePath ?? CommandLine.arguments[0]
    let product = URL(fileURLWithPath: bundle).deletingLastPathComponent().appendingPathComponent("stillwave").path
    let made = FileManager.default.createFile(
      atPath: path,
      contents: Data(
        """
        #!/bin/sh
        [ "$1-$2" != reader-samples ] || exec '\(product)' "$@"
        [ "$1" = reader ] || { . "${0%/*}/script"; exit; }
        failed=3
        read -r opening
        while (. "${0%/*}/script") || [ $? = 3 ]; do :; done

        """.utf8),
      attributes: [.posixPermissions: 0o755])
    precondition(made, "the launcher can't be written")
    atexit { _ = unsafe unlink(NSTemporaryDirectory() + "stillwave-service-launcher-\(getpid())") }
    return path
  }()

  /// The jobs whose children were started, in order, one entry per attempt.
  var starts: [String] {
    let text = (try? String(contentsOfFile: folder.path + "/starts", encoding: .utf8)) ?? ""
    return text.split(separator: "\n").map(String.init).filter { !$0.hasPrefix(" ") }
  }

  // MARK: Rows

  /// Creates a recording with a file, ready or not, like an upload does.
  func recording(
    name: String = "talk.wav", state: WaveformState = .ready, job: JobID? = nil, containing text: String = "RIFF"
  ) throws -> Recording {
    let file = try store.receive()
    try file.append(Array(text.utf8).span)
    let id = RecordingID()
    let stored = try store.objects.adopt(file, as: id, name: "audio.wav")
    let recording = Recording(
      id: id, name: name, bytes: stored.bytes, sha256: stored.sha256,
      format: SoundShape(container: "wav", codec: "pcm_s16", sampleRate: 1000, channels: 2, frames: 60_000),
      waveformState: state, waveformJob: job, audioKey: stored.key)
    try catalog.insert(recording)
    return recording
  }

  /// An empty track of labels.
  func labelTrack(of recording: Recording) throws -> LabelTrack {
    let track = LabelTrack(of: recording.id, name: "Labels", kind: .labels, language: nil, source: .upload)
    try catalog.insert(track, [], limit: 64)
    return track
  }

  /// A waveform job on a recording of its own, in the catalog and not yet submitted, with a gate that is shut.
  func waveformJob() throws -> Job {
    let id = JobID()
    let job = Job(id: id, kind: .waveform, recording: try recording(state: .queued, job: id).id)
    try catalog.insert(job)
    try makeGate(job.id)
    return job
  }

  // MARK: Gates

  /// Creates a gate to be opened once: a second step using it might find it still open.
  func makeGate(_ id: JobID, _ step: String = "") throws {
    guard unsafe mkfifo(folder.path + "/gate-\(id)\(step)", 0o600) == 0 else { throw POSIXError(.EIO) }
  }

  /// Releases the child of a job that waits at its gate, now or later.
  func openGate(_ id: JobID, _ step: String = "") async throws {
    try await letThrough(folder.path + "/gate-\(id)\(step)")
  }

  /// Writes a line into a pipe that a child reads, now or later.
  func letThrough(_ path: String) async throws {
    // The child opens its end first; until then, opening it without blocking fails.
    var file: Int32 = -1
    try await eventually {
      file = unsafe open(path, O_WRONLY | O_NONBLOCK)
      return file >= 0
    }
    let end = FileHandle(fileDescriptor: file, closeOnDealloc: true)
    try end.write(contentsOf: Data("\n".utf8))
  }

  // MARK: Waiting

  /// Returns when `condition` holds; fails the test if it never does. With a sanitizer and another load on the machine,
  /// a task may not get a thread for a minute.
  func eventually(_ condition: () async throws -> Bool) async throws {
    let deadline = ContinuousClock.now + .seconds(300)
    let pace = LiveJobs()
    let tick = JobID()
    pace.insert(tick, LiveJob(tenant: .none, recording: RecordingID()))
    while try await !condition() {
      try #require(ContinuousClock.now < deadline, "it never came; the log ends: \(logged.all.suffix(5))")
      await pace.waitForChange(of: tick, seconds: 0.005)
    }
  }

  /// Returns when a job's state, nil if it isn't live, meets a condition. Its changes wake the caller.
  func until(_ id: JobID, _ condition: (LiveJob?) -> Bool) async {
    while true {
      let look = runner.live.look(at: id)
      if condition(runner.live[id]) { return }
      await runner.live.waitForChange(of: id, since: look, seconds: .infinity)
    }
  }

  /// Returns when a job's child runs.
  func begun(_ id: JobID) async { await until(id) { $0?.isRunning == true } }

  /// Returns when all jobs have ended.
  func allEnd() async {
    for id in runner.known { await until(id) { $0 == nil } }
    // A job is forgotten just before it isn't live any more.
    runner.queue.sync {}
  }

  /// Waits until the job has reached its last state and its child is gone, and returns the job.
  func finished(_ id: JobID) async throws -> Job {
    await until(id) { $0 == nil }
    let job = try #require(try catalog.job(id))
    #expect(job.state.isFinished)
    return job
  }

  func isRunning(_ id: JobID) -> Bool { runner.live[id]?.isRunning ?? false }

  // MARK: Requests

  func respond(
    _ method: HTTPMethod, _ target: String, fields: HTTPFields = [:], body: String = "",
    from peer: String = "in-process"
  ) async throws -> HTTPResponse {
    let request = try HTTPRequest(
      method: method, target: target, fields: fields, body: Array(body.utf8), peer: peer)
    return try await responder.respond(to: request).response
  }
}
