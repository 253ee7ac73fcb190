import Contract
import Foundation
import HTTP
import Testing

@testable import AudioService

@Suite struct PublicPagesTests {
  private static let id = "0199a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b"

  @Test("what other pages load needs no key, and every origin may have it")
  func embedding() async throws {
    let keyed = try KeyedBench()
    for name in ["stillwave.js", "spectrogram.js"] {
      let script = try await keyed.respond(.get, "/embed/\(name)", key: nil, fields: ["Origin": "https://any.example"])
      #expect(script.status == .ok)
      #expect(script.fields["Content-Type"] == "text/javascript; charset=utf-8")
      #expect(script.fields["Access-Control-Allow-Origin"] == "*")
      #expect(script.fields["Cross-Origin-Resource-Policy"] == "cross-origin")
    }
    #expect(try await keyed.status(.get, "/embed/index.html", key: nil) == 404)
    #expect(try await keyed.status(.get, "/docs", key: nil) == 200)
  }

  @Test(
    "the embedded page may be shown by the configured origins",
    arguments: [
      (AllowedOrigins.only([]), "'none'"), (.any, "*"),
      (
        .only([Origin("https://b.example")!, Origin("HTTP://A.example:8080")!, Origin("https://c.example:443")!]),
        "http://a.example:8080 https://b.example https://c.example"
      ),
    ])
  func ancestors(_ origins: AllowedOrigins, _ list: String) async throws {
    let bench = try TestBench { $0.embedOrigins = origins }
    let page = try await bench.respond(.get, "/embed")
    let policy = page.fields["Content-Security-Policy"] ?? ""
    #expect(policy.contains("frame-ancestors \(list);") && policy.hasPrefix("default-src 'none'; script-src 'self'"))
    #expect(page.fields["Referrer-Policy"] == "no-referrer")
    #expect(page.fields["Cross-Origin-Resource-Policy"] == "cross-origin")
    for other in ["/", "/docs", "/viewer/embed.html"] {
      let policy = try await bench.respond(.get, other).fields["Content-Security-Policy"]
      #expect(policy?.contains("frame-ancestors 'none';") == true, "\(other)")
    }
  }

  @Test("a page below a base path finds its scripts", arguments: ["docs", "embed"])
  func relative(_ name: String) async throws {
    let bench = try TestBench { $0.basePath = BasePath("/audio") ?? .root }
    let page = String(decoding: try await bench.respond(.get, "/audio/\(name)").body.collect(), as: UTF8.self)
    for attribute in page.matches(of: #/(?:src|href)="([^"#][^"]*)"/#) {
      #expect(try await bench.respond(.get, "/audio/\(attribute.1)").status == .ok, "\(attribute.1)")
    }
  }

  private func oEmbed(
    _ url: String, _ more: String = "", host: String? = "audio.example", base: BasePath = .root
  ) async throws -> [String: Any] {
    let bench = try TestBench {
      ($0.allowedHosts, $0.basePath) = (["audio.example"], base)
    }
    let value = url.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
    let fields: HTTPFields = host.map { ["Host": $0] } ?? [:]
    let response = try await bench.respond(.get, "/oembed?url=\(value)\(more)", fields: fields)
    let body = Data(try await response.body.collect())
    let violations = try OpenAPIDocument.shared.get().validate(
      method: "GET", path: "/oembed", status: response.status.code, contentType: response.fields["Content-Type"],
      headers: ["X-Request-Id": "test", "Cache-Control": response.fields["Cache-Control"] ?? ""], body: body)
    #expect(violations == [])
    return try JSONSerialization.jsonObject(with: body) as? [String: Any] ?? [:]
  }

  @Test(
    "oEmbed answers with a frame for an address of this service",
    arguments: [
      (
        "https://audio.example/embed#recording=\(id)&token=a.b-c&theme=dark",
        "recording=\(id)&amp;token=a.b-c&amp;theme=dark"
      ),
      ("http://Audio.example:80/#recording=\(id)&token=a.b", "recording=\(id)&amp;token=a.b"),
      ("https://audio.example/#\(id)&view=1-2", "recording=\(id)&amp;view=1-2"),
      ("https://audio.example/audio/embed#recording=\(id)", "recording=\(id)"),
    ])
  func frames(_ url: String, _ fragment: String) async throws {
    let found = try await oEmbed(url, "&maxwidth=480&format=json")
    #expect(found["type"] as? String == "rich" && found["version"] as? String == "1.0")
    #expect(found["width"] as? Int == 480 && found["height"] as? Int == 200)
    let base = url.prefix { $0 != "#" }.replacing(/embed$/, with: "")
    #expect((found["html"] as? String)?.hasPrefix("<iframe src=\"\(base)embed#\(fragment)\" width=\"480\"") == true)
  }

  @Test(
    "oEmbed answers for no other address",
    arguments: [
      "https://evil.example/embed#recording=\(id)", "https://audio.example:8443/embed#recording=\(id)",
      "https://audio.example@evil.example/embed#recording=\(id)", "javascript://audio.example/#recording=\(id)",
      "https://audio.example/embed", "https://audio.example/embed#recording=none",
      "https://audio.example/embed#theme=dark",
      "https://audio.example/embed?x#recording=\(id)", "https://audio.example/docs#recording=\(id)",
      "https://audio.example/embed#recording=\(id)&theme=\"><script>", "https://audio.example/\"/embed#recording=\(id)",
      "https://audio.example#recording=\(id)", "://audio.example/#\(id)", "#\(id)", "",
    ])
  func others(_ url: String) async throws {
    let found = try await oEmbed(url)
    #expect(found["status"] as? Int == 404 && found["parameter"] as? String == "url", "\(found)")
    let nameless = try await oEmbed("https://audio.example/embed#recording=\(Self.id)", host: nil)
    #expect(nameless["status"] as? Int == 404)
  }

  @Test(arguments: ["&format=xml", "&maxwidth=0", "&maxheight=1.5", "&width=1"])
  func oEmbedRefusesWhatItDoesNotKnow(_ more: String) async throws {
    #expect(try await oEmbed("https://audio.example/#\(Self.id)", more)["status"] as? Int == 400)
  }
}
