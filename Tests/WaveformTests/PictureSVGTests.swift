import Foundation
import FoundationXML
import Terms
import Testing

@testable import Waveform

struct PictureSVGTests {
  /// The elements of a document with their attributes and text, in document order. Fails if it isn't XML.
  private final class Document: NSObject, XMLParserDelegate {
    var elements: [(name: String, attributes: [String: String], text: String)] = []

    func parser(
      _ parser: XMLParser, didStartElement name: String, namespaceURI: String?, qualifiedName: String?,
      attributes: [String: String] = [:]
    ) { elements.append((name, attributes, "")) }

    func parser(_ parser: XMLParser, foundCharacters text: String) { elements[elements.count - 1].text += text }
  }

  private func parse(_ svg: String) throws -> Document {
    let (parser, document) = (XMLParser(data: Data(svg.utf8)), Document())
    parser.delegate = document
    try #require(parser.parse(), "\(String(describing: parser.parserError))")
    return document
  }

  /// Returns the corners of a path that consists of M, l, and z.
  private func corners(_ path: String) throws -> [[(x: Double, y: Double)]] {
    var shapes: [[(x: Double, y: Double)]] = []
    for part in path.split(separator: "M") {
      let text = part.replacing("l", with: " ").replacing("z", with: "").replacing("-", with: " -")
      let numbers = text.split(separator: " ").map {
        Double($0.hasPrefix(".") ? "0\($0)" : $0.replacing("-.", with: "-0."))
      }
      var shape: [(x: Double, y: Double)] = []
      for index in stride(from: 0, to: numbers.count, by: 2) {
        let (x, y) = (try #require(numbers[index]), try #require(numbers[index + 1]))
        shape.append(shape.last.map { ($0.x + x, $0.y + y) } ?? (x, y))
      }
      shapes.append(shape)
    }
    return shapes
  }

  @Test func everyPictureIsWellFormedWithOnlyShapesAndLabels() throws {
    let source = try PictureSource(.words())
    let growing = try PictureSource(.words(), available: 20_000)
    for (start, end) in [(0.0, 6.0), (1, 1.002), (1, 1.05), (1, 1.5), (7, 8)] {
      for channels in [ChannelSelection.mix, .split] {
        for look in PictureLook.allCases {
          for source in [source, growing] {
            let query = WaveformQuery(start: start, end: end, resolution: .width(150), channels: channels)
            let drawing = try Drawing(source, query, over: source) {
              ($0.look, $0.axis, $0.background) = (look, true, PictureColor.rgb(0xffffff).opacity(0.5))
            }
            let document = try parse(drawing.svg())
            #expect(document.elements.first?.name == "svg")
            #expect(document.elements[0].attributes["viewBox"] == "0 0 150 200")
            #expect(Set(document.elements.map(\.name)).isSubset(of: ["svg", "rect", "path", "g", "text"]))
            #expect(
              document.elements.allSatisfy { $0.attributes.keys.allSatisfy { !$0.hasPrefix("on") && $0 != "href" } })
          }
        }
      }
    }
  }

  @Test func aLaneAndShadeIsOnePath() throws {
    let source = try PictureSource(.words())
    func paths(_ channels: ChannelSelection, overlay: Bool) throws -> Int {
      let query = WaveformQuery(resolution: .width(150), channels: channels)
      let svg = try Drawing(source, query, over: overlay ? source : nil).svg()
      return try parse(svg).elements.filter { $0.name == "path" }.count
    }
    #expect(try paths(.mix, overlay: false) == 2 && paths(.split, overlay: false) == 4)
    #expect(try paths(.mix, overlay: true) == 4 && paths(.split, overlay: true) == 8)
  }

  @Test func theOutlineFollowsThePeaksToATenthOfAPixel() throws {
    let source = try PictureSource(.words(channels: 1))
    let drawing = try Drawing(source, WaveformQuery(resolution: .scale(256)))
    let slice = try source.slice(drawing.picture.window)
    let paths = try parse(drawing.svg()).elements.filter { $0.name == "path" }
    let shape = try #require(try corners(paths[0].attributes["d"] ?? "").first)
    let width = drawing.picture.width
    #expect(shape.count == 2 * width + 4 && width == 188)
    for column in 0..<width {
      let (low, high) = (Double(slice.data[2 * column]), Double(slice.data[2 * column + 1]))
      let (top, bottom) = (shape[1 + column], shape[shape.count - 2 - column])
      #expect(abs(top.x - Double(column) - 0.5) < 0.06 && abs(bottom.x - Double(column) - 0.5) < 0.06)
      // The middle is at 99.5, full scale 99 from it, and there is half a pixel around everything.
      #expect(abs(top.y - (99 - high / 32768 * 99)) < 0.06, "column \(column)")
      #expect(abs(bottom.y - (100 - low / 32768 * 99)) < 0.06, "column \(column)")
    }
  }

  @Test func noDataMeansNoPath() throws {
    let nothing = try PictureSource(.words(), available: 0)
    #expect(!(try Drawing(nothing, WaveformQuery(resolution: .width(90))).svg().contains("<path")))
    let half = try PictureSource(.words(), available: 24_000)
    let svg = try Drawing(half, WaveformQuery(resolution: .width(90))).svg()
    let path = try #require(try parse(svg).elements.first { $0.name == "path" }?.attributes["d"])
    let right = try corners(path).joined().map(\.x).max() ?? 0
    #expect(abs(right - 45) <= 1.1)
  }

  @Test func numbersHaveOneDecimalAndColumnsTakeFewBytes() throws {
    let source = try PictureSource(.words())
    let svg = try Drawing(source, WaveformQuery(resolution: .width(1000))) { $0.axis = true }.svg()
    #expect(svg.firstMatch(of: /\.[0-9]{2}/) == nil || svg.contains("opacity"))
    let paths = try parse(svg).elements.compactMap { $0.attributes["d"] }
    #expect(paths.allSatisfy { $0.firstMatch(of: /[0-9]\.[0-9]{2}|e|--|nan|inf/) == nil })
    #expect(svg.utf8.count < 4 * 6 * 1000 + 2000, "\(svg.utf8.count) bytes for 1000 columns")
  }

  @Test func theAxisHasTheSameTicksAsThePNG() throws {
    let source = try PictureSource(.words())
    let drawing = try Drawing(source, WaveformQuery(resolution: .width(600))) { $0.axis = true }
    let elements = try parse(drawing.svg()).elements.filter { $0.name == "text" }
    #expect(elements.map(\.text) == drawing.picture.ticks.compactMap(\.label))
    #expect(elements[1].attributes["x"] == "100" && elements[0].attributes["x"] != "0")
  }

  @Test func aPixelRatioMakesTheOutlineFiner() throws {
    let source = try PictureSource(.words())
    func count(_ ratio: Double) throws -> Int {
      let svg = try Drawing(source, WaveformQuery(resolution: .width(100))) { $0.pixelRatio = ratio }.svg()
      #expect(svg.contains("width=\"100\""))
      return try corners(try parse(svg).elements[1].attributes["d"] ?? "").joined().count
    }
    #expect(try count(1) == 204 && count(2) == 404)
  }
}
