import Foundation
import Testing

@testable import S3Storage

@Suite struct CredentialSourceTests {
  private static let file = """
    # comment
    aws_access_key_id = outside
    [other]
    aws_access_key_id=O1
    aws_secret_access_key=O2

    [default]
      aws_access_key_id =  D1\r
    aws_secret_access_key = D2/+=
    ; aws_session_token = no
    region = x
    """

  @Test("the environment comes first; an empty session token counts as none")
  func environment() throws {
    let source = try CredentialSource(environment: [
      "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_SESSION_TOKEN": "",
      "AWS_SHARED_CREDENTIALS_FILE": "/nowhere",
    ])
    #expect(try source.current() == S3Credentials(accessKey: "a", secretKey: "b"))
  }

  @Test("a file has sections; AWS_PROFILE names the one to use")
  func sections() throws {
    let folder = try TemporaryFolder()
    var environment = ["AWS_SHARED_CREDENTIALS_FILE": try folder.file("c", Array(Self.file.utf8))]
    #expect(
      try CredentialSource(environment: environment).current() == S3Credentials(accessKey: "D1", secretKey: "D2/+="))
    environment["AWS_PROFILE"] = "other"
    #expect(
      try CredentialSource(environment: environment).current() == S3Credentials(accessKey: "O1", secretKey: "O2"))
  }

  @Test("missing credentials are an error that names the file")
  func missing() throws {
    let folder = try TemporaryFolder()
    let path = folder.path + "/c"
    #expect(throws: S3Error.noCredentials(file: path)) { try CredentialSource(file: path).current() }
    _ = try folder.file("c", Array("[default]\naws_access_key_id = a\n".utf8))
    #expect(throws: S3Error.noCredentials(file: path)) { try CredentialSource(file: path).current() }
    #expect(throws: S3Error.noCredentials(file: nil)) { try CredentialSource(environment: [:]) }
    #expect(throws: S3Error.noCredentials(file: nil)) {
      try CredentialSource(environment: ["AWS_ACCESS_KEY_ID": "a b", "AWS_SECRET_ACCESS_KEY": "c"])
    }
  }

  @Test("a new version of the file is used; while it is unreadable or incomplete, the last one is")
  func reloading() throws {
    let folder = try TemporaryFolder()
    func text(_ secret: String) -> [UInt8] {
      Array("[default]\naws_access_key_id = a\naws_secret_access_key = \(secret)\n".utf8)
    }
    let source = CredentialSource(file: try folder.file("c", text("first")))
    #expect(try source.current().secretKey == "first")
    _ = try folder.file("c", Array("[default]\n".utf8))
    #expect(try source.current().secretKey == "first")
    try FileManager.default.removeItem(atPath: folder.path + "/c")
    #expect(try source.current().secretKey == "first")
    _ = try folder.file("c", text("second"))
    #expect(try source.current().secretKey == "second")
  }

  @Test("descriptions don't show the secrets")
  func descriptions() throws {
    let credentials = try #require(S3Credentials(accessKey: "name", secretKey: "hidden", sessionToken: "private"))
    var dumped = ""
    dump(credentials, to: &dumped)
    let texts = "\(credentials) \(String(reflecting: credentials)) \(dumped)"
    #expect(texts.contains("name"))
    #expect(!texts.contains("hidden"))
    #expect(!texts.contains("private"))
  }
}
