extension TrackList {
  /// What ffprobe would say about a file with such boxes.
  init(_ boxes: SoundBoxes) {
    var sound = Answer.Stream(codec_name: "aac", codec_type: "audio", codec_tag_string: "mp4a", index: 0)
    // ffprobe writes six decimal places.
    sound.duration = "\((boxes.duration * 1e6).rounded() / 1e6)"
    sound.start_time = boxes.isEdited ? "0" : nil
    sound.bit_rate = boxes.bitRate > 0 ? "\(boxes.bitRate)" : nil
    sound.tags = Answer.Stream.Tags(language: boxes.language)
    self.init([sound])
  }
}
