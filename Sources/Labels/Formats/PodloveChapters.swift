// Podlove Simple Chapters (https://podlove.org/simple-chapters/):
//
//   <psc:chapters version="1.2" xmlns:psc="http://podlove.org/simple-chapters">
//     <psc:chapter start="00:00:00.000" title="…" href="https://…" image="https://…"/>
//   </psc:chapters>
//
// A chapter lasts until the next one that starts later; the last one, until the end of the recording.

enum PodloveChapters {
  static func parse(_ source: SourceText, duration: MediaTime?) throws(LabelsError) -> LabelFile {
    var (scanner, labels) = (XMLScanner(source), LabelCollector(source))
    guard case .begin(let root)? = try scanner.next(), root.name == "chapters" else {
      throw source.error(.missingMember("chapters"), at: 0)
    }
    while let event = try scanner.next() {
      guard case .begin(let element) = event, element.name == "chapter" else { continue }
      try labels.take(at: element.offset) { () throws(LabelsError) in
        guard let start = element.attributes["start"] else {
          throw source.error(.missingMember("start"), at: element.offset)
        }
        let time: MediaTime
        do throws(LabelsFault) { time = try TimeParser(bytes: start).clock(0..<start.count, fewestParts: 1) } catch {
          throw source.error(error, at: element.offset)
        }
        let title = normalText((element.attributes["title"] ?? [])[...])
        var chapter = Label(start: time, end: PodcastChapters.openEnd, text: title)
        (chapter.details.url, chapter.details.image) = (element.text("href"), element.text("image"))
        return [chapter]
      }
    }
    var file = LabelFile()
    labels.finish(&file)
    PodcastChapters.close(&file.labels, duration)
    return file
  }
}
