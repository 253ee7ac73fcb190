import Denoise
import HTTP
import Storage

/// What is wrong with a request, or why it can't be answered yet, through no fault of the service. Facts only; the
/// words are in `ErrorResponses+Requests`.
enum RequestError: Error, Equatable, Sendable {
  // The query.
  case repeatedParameter(String)
  case unknownParameter(String, known: [String])
  case missingParameter(String, Expectation)
  case invalidParameter(String, value: String, Expectation)
  /// Both “scale” and “width”.
  case twoResolutions
  /// The noise is to be that of a profile, or a profile is to be learned from a recording, that doesn't exist.
  /// The member `parameter` names a noise profile that doesn't exist.
  case noSuchNoiseProfile(String, parameter: String)
  case noSuchNoisyRecording(String)
  /// A picture is to be drawn over another recording's, which doesn't exist.
  case noSuchOverlay(String)
  /// The page of a problem with this code.
  case noSuchProblem(String)
  /// An address that isn't one of this service's own that can be embedded.
  case notEmbeddable

  // The header fields.
  case invalidField(String, Expectation)
  case notJSON(contentType: String)
  case encodedContent([String])
  /// The types that the response could have had.
  case notAcceptable([String])
  case notUploadBytes
  /// nil if the request doesn't name a version.
  case unsupportedTusVersion(String?)
  case joinedUploads
  /// An upload of 0 bytes is announced.
  case emptyUploadAnnounced
  case uploadTooLarge(limit: Int64)
  /// The request changes an object that may only be changed in a certain version.
  case missingIfMatch

  // The body.
  case malformedJSON(JSONFault)
  case notAnObject
  case unknownMember(String, known: [String])
  case invalidMember(String, Expectation)
  case noBoundary
  case unexpectedPart(String)
  case noFilePart
  case longFormField(String, limit: Int)

  // What the request wants done.
  /// Seconds.
  case windowOutside(start: Double, duration: Double, parameter: String)
  case recordingTooShort(frames: Int64, NoiseNeeds)
  /// Seconds.
  case noiseRegionOutside(start: Double, end: Double, duration: Double)
  case noiseRegionTooShort(frames: Int64, NoiseNeeds)
  /// Channels of the recording, and how many can be mixed down to MP3's two.
  case tooManyChannelsForMP3(Int, limit: Int)
  /// The method `voice` isn't installed.
  case methodUnavailable
  case webhooksAreOff
  case privateCallback
  /// The job is still converting the recording.
  case converting(JobID)
  /// The job is still decoding the recording, which a conversion needs first.
  case decoding(JobID)
  /// The job is still measuring the recording.
  case measuring(JobID)
  /// The job that would have read the whole recording failed.
  case neverRead(RecordingID)
  /// Nothing is wrong with the request: the service isn't ready for work.
  case serviceUnready(Readiness.Finding)
  /// The client went away before its turn.
  case clientLeft
}

/// How much sound it takes to learn a noise.
struct NoiseNeeds: Equatable, Sendable {
  var frames: Int64
  var sampleRate: Int
}

/// What a value of a request must be.
enum Expectation: Equatable, Sendable {
  case given
  case oneOf([String])
  /// One or more, separated by commas.
  case someOf([String])
  case wholeNumber(ClosedRange<Int>)
  case number(ClosedRange<Double>)
  case decimal
  case seconds
  case secondsFromZero
  /// The start of a part. `duration`: of the recording, in seconds.
  case beforeEnd(duration: Double)
  /// The end of a window. `limit`: its greatest length in seconds.
  case afterStart(limit: Double?)
  case window(limit: Double)
  case noise
  case givenWith(String)
  case startOfRegion
  /// Given unless the other member is.
  case givenWithout(String)
  /// Given unless one of the others is.
  case givenWithoutAny([String])
  /// Left out because the other member excludes it.
  case leftOutWith(String)
  /// Given because of this method.
  case givenWithMethod(String)
  /// Greater than the other member.
  case above(String)
  /// Left out unless this is the form of a preview.
  case leftOutUnlessAs(String)
  case objectWith([String])
  case edit
  case boxes(limit: Int)
  /// A list of any of these, each once.
  case listOf([String])
  /// A list of regions of noise.
  case noiseRegions(limit: Int)
  case afterPreviousRegion
  /// The only one of these members.
  case alone(among: [String])
  /// The numbers of a noise profile; the words say what they must be.
  case noiseDensity(NoiseDensity.Fault)
  /// Left out, because the other member sets it.
  case leftOutBeside(String)
  /// Left out, because the method doesn't have it.
  case leftOutWithMethod(String)
  case recordingID, jobID, cursor
  case recordingIDs(limit: Int)
  case object
  case color(names: [String])
  case amplitude(ClosedRange<Double>)
  case channels
  case text(byteLimit: Int)
  case visibleText
  case languageTag
  /// IDs of labels that the track has; it has none with this one.
  case labelsOfTrack(unknown: String)
  /// Names each label once, not this one twice.
  case distinctLabels(repeated: String)
  /// Leaves no more in the track than the limits of a track.
  case labelsWithinLimits
  case callbackAddress

  // Header fields.
  case visibleASCII(limit: Int)
  case byteCount
  case uploadMetadata
  case uniqueMetadataKey(String)
  case base64Metadata(key: String)
  case checksum(algorithms: String)
  case digest(algorithm: String, byteCount: Int)
  case deferredLength
  /// The upload's offset.
  case lengthOnce(offset: Int64)
  case noLengthOfJoined
  case concatenation
  case methodPOST
}
