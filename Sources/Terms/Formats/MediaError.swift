/// Errors in reading and writing files with ffmpeg.
package enum MediaError: Error, Sendable, Equatable {
  /// A file can't be read because ffmpeg isn't installed.
  case missingProgram(MediaContainer)
  /// A file can't be written because ffmpeg isn't installed.
  case missingEncoder
  case noAudio(MediaContainer)
  /// No frame of the sound could be decoded; `codec` is nil if unknown.
  case undecodable(MediaContainer, codec: String?)
  /// Probing the file took more processor time than a probe may use.
  case tooSlow
  /// Decoding the file took more processor time than a job may use.
  case tooLong
  /// ffmpeg or ffprobe itself failed before it had described or decoded the whole file.
  case programFailed(ProgramFailure)
  /// ffmpeg didn't write its output file.
  case encoderFailed
  /// A system call failed.
  case system(operation: String, errno: Int32)
}
