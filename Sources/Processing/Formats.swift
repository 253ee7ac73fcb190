import AudioIO
import Media

// The vocabulary of `AudioIO` and `Media` that describes files without opening them. What runs in the service's process
// has it from here and imports neither module, which deploy/lint checks: so nothing there can name what opens a sound.

/// The format of a sound file.
package typealias AudioFormat = AudioIO.AudioFormat
/// The kind of a sound file.
package typealias AudioContainer = AudioIO.AudioContainer
/// How samples are coded.
package typealias AudioCodec = AudioIO.AudioCodec
/// The limits on recordings.
package typealias AudioLimits = AudioIO.AudioLimits
/// The formats that a client can ask for.
package typealias OutputFormat = AudioIO.OutputFormat
/// Why a sound can't be read or written.
package typealias AudioIOError = AudioIO.AudioIOError
/// The head of a file that is sent while it's encoded.
package typealias StreamedHeader = AudioIO.StreamedHeader
/// What is known about a file that ffmpeg reads.
package typealias MediaFacts = Media.MediaFacts
