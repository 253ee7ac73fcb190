import AudioIO

/// What a process has been given of the files that its work names, because it can't open them itself.
struct OpenedFiles {
  /// The source's sound map; nil to make it.
  var map: SoundMap?
  /// The file to write, and that of the noise profile; nil to open them.
  var output, profile: Int32?
}
