import Testing

@testable import S3Storage

@Suite struct S3BucketTests {
  @Test(
    "an address names the host and the path of an object",
    arguments: [
      ("s3://sounds", "https://sounds.s3.us-east-1.amazonaws.com", "/k"),
      ("s3://sounds?region=eu-central-1", "https://sounds.s3.eu-central-1.amazonaws.com", "/k"),
      ("s3://so.unds", "https://s3.us-east-1.amazonaws.com", "/so.unds/k"),
      ("s3://sounds?style=path", "https://s3.us-east-1.amazonaws.com", "/sounds/k"),
      ("s3://sounds/a/b/?endpoint=http://127.0.0.1:7480/", "http://127.0.0.1:7480", "/sounds/a/b/k"),
      ("s3://sounds?endpoint=https://Store.Example:443", "https://store.example", "/sounds/k"),
      ("s3://sounds?endpoint=http%3A%2F%2F[::1]:80", "http://[::1]", "/sounds/k"),
      ("s3://sounds?endpoint=http://h:81&style=virtual", "http://sounds.h:81", "/k"),
    ])
  func addresses(address: String, origin: String, path: String) throws {
    let bucket = try S3Bucket(address)
    #expect("\(bucket.scheme)://\(bucket.host)" == origin)
    #expect(bucket.path(of: "k") == path)
  }

  @Test(
    "an address that can't be used is refused, with the part that is wrong",
    arguments: [
      ("https://sounds", .scheme), ("s3:/sounds", .scheme), ("s3://", .bucket), ("s3://ab", .bucket),
      ("s3://Sounds", .bucket), ("s3://-sounds", .bucket), ("s3://sou_nds", .bucket), ("s3://sounds/a//b", .prefix),
      ("s3://sounds/../b", .prefix), ("s3://sounds/a b", .prefix), ("s3://sounds?endpoint=ftp://h", .endpoint),
      ("s3://sounds?endpoint=http://", .endpoint), ("s3://sounds?endpoint=http://u@h", .endpoint),
      ("s3://sounds?endpoint=http://h/path", .endpoint), ("s3://sounds?endpoint=http://h:99999", .endpoint),
      ("s3://sounds?endpoint=http://h:1:2", .endpoint), ("s3://sounds?region=a/b", .region),
      ("s3://sounds?region=", .region), ("s3://sounds?style=dns", .option("style")),
      ("s3://sounds?encryption=rot13", .option("encryption")), ("s3://sounds?regoin=x", .option("regoin")),
      ("s3://sounds?region=a&region=b", .option("region")), ("s3://sounds?region=%4", .option("region")),
    ] as [(String, S3Bucket.Fault)])
  func faults(address: String, fault: S3Bucket.Fault) {
    #expect(throws: S3Error.invalidAddress(fault)) { try S3Bucket(address) }
  }
}
