// swift-tools-version: 6.2
import PackageDescription

/// The settings that apply to every Swift target; see CONTRIBUTING.md.
let strict: [SwiftSetting] = [
  .treatAllWarnings(as: .error),
  .strictMemorySafety(),
  .enableUpcomingFeature("ExistentialAny"),
]

/// For the server, which handles each request in hundreds of short calls: debug builds, in which the tests run, check
/// at run time that no two accesses to a variable overlap. Releases don't, which saves 6 % of the instructions.
let checkedInDebug: [SwiftSetting] = [
  .unsafeFlags(["-enforce-exclusivity=unchecked"], .when(configuration: .release))
]

/// For modules that compute, and their tests: loops over seconds of sound take ten times as long without optimization.
let computing: [SwiftSetting] = [.unsafeFlags(["-O"], .when(configuration: .debug))]

/// The test targets to build, from `STILLWAVE_TESTS=DenoiseTests,JobsTests`: fewer of them build sooner. `all` means
/// all of them, but not the programs that only measure. If it isn't set, everything is built.
let chosenTests = Context.environment["STILLWAVE_TESTS"]?.split(separator: ",").map(String.init)

let package = Package(
  name: "stillwave",
  products: [.executable(name: "stillwave", targets: ["stillwave"])],
  dependencies: [
    .package(url: "https://github.com/apple/swift-argument-parser", exact: "1.8.2"),
    .package(url: "https://github.com/apple/swift-log", exact: "1.16.2"),
    // For tests only: parses openapi.yaml.
    .package(url: "https://github.com/jpsim/Yams", exact: "6.2.2"),
  ],
  targets: [
    // C libraries of the system, and declarations missing from the Glibc overlay.
    .systemLibrary(name: "CSndfile", pkgConfig: "sndfile", providers: [.apt(["libsndfile1-dev"])]),
    .systemLibrary(name: "CFFTW", pkgConfig: "fftw3f", providers: [.apt(["libfftw3-dev"])]),
    .systemLibrary(name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
    .systemLibrary(name: "CUTF8Proc", providers: [.apt(["libutf8proc-dev"])]),
    .systemLibrary(name: "CCrypto", pkgConfig: "libcrypto", providers: [.apt(["libssl-dev"])]),
    .systemLibrary(name: "CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),
    .systemLibrary(name: "CDeflate", pkgConfig: "libdeflate", providers: [.apt(["libdeflate-dev"])]),
    .systemLibrary(name: "CZstd", pkgConfig: "libzstd", providers: [.apt(["libzstd-dev"])]),
    .systemLibrary(name: "CEBUR128", pkgConfig: "libebur128", providers: [.apt(["libebur128-dev"])]),
    .systemLibrary(name: "CSeccomp", pkgConfig: "libseccomp", providers: [.apt(["libseccomp-dev"])]),
    .target(name: "CLinux", dependencies: ["CSeccomp"]),
    // Needs only libcurl's headers, from libcurl4-openssl-dev; see CCurl.c.
    .target(name: "CCurl"),
    // Needs no headers of PostgreSQL; see CPostgres.c.
    .target(name: "CPostgres"),
    // Needs libpng-dev.
    .target(name: "CPNG"),
    .target(name: "CViewer"),
    // Loops over 16-bit samples for several instruction sets.
    .target(name: "CPeaks"),
    // The loops of noise removal, for several instruction sets. Tests check them as they are released: vectorized.
    .target(name: "CKernels", cSettings: [.unsafeFlags(["-O2"])]),
    // The networks for speech, likewise, and libsoxr, which is loaded when it is needed.
    .target(name: "CVoice", cSettings: [.unsafeFlags(["-O2"])]),

    // The commit, which deploy/build names, apart from all else: another one compiles nothing again but this.
    .target(
      name: "CVersion",
      cSettings: [.define("STILLWAVE_COMMIT", to: "\"\(Context.environment["STILLWAVE_COMMIT"] ?? "")\"")]),

    // The vocabulary that the siblings share.
    .target(name: "Terms", swiftSettings: strict),
    // The eight siblings, which never import each other.
    .target(
      name: "HTTP", dependencies: ["Terms", "CLinux", "CZlib", "CDeflate", "CZstd"],
      swiftSettings: strict + checkedInDebug),
    .target(
      name: "Storage", dependencies: ["Terms", "CLinux", "CCrypto", "CSQLite", "CUTF8Proc"], swiftSettings: strict),
    .target(name: "PostgresStorage", dependencies: ["Terms", "Storage", "CPostgres"], swiftSettings: strict),
    .target(name: "S3Storage", dependencies: ["Terms", "Storage", "CCurl"], swiftSettings: strict),
    .target(name: "Labels", dependencies: ["Terms"], swiftSettings: strict + computing),
    .target(name: "AudioIO", dependencies: ["Terms", "CLinux", "CSndfile"], swiftSettings: strict + computing),
    .target(name: "Media", dependencies: ["Terms", "CLinux"], swiftSettings: strict),
    .target(
      name: "Waveform", dependencies: ["Terms", "CLinux", "CPeaks", "CPNG"], swiftSettings: strict + computing,
      linkerSettings: [.linkedLibrary("m")]),
    .target(
      name: "Denoise", dependencies: ["Terms", "CFFTW", "CKernels", "CPeaks"], swiftSettings: strict + computing,
      linkerSettings: [.linkedLibrary("m")]),

    .target(
      name: "Voice", dependencies: ["Terms", "CCrypto", "CFFTW", "CVoice"], swiftSettings: strict + computing,
      linkerSettings: [.linkedLibrary("m")]),
    .target(name: "Loudness", dependencies: ["Terms", "CEBUR128"], swiftSettings: strict + computing),

    // What the service asks of its workers, and what they answer. The service has this in place of Processing, which
    // opens sound; deploy/lint builds with a check that no target imports what isn't among its dependencies.
    .target(
      name: "Workers", dependencies: ["Terms", "Denoise", "Voice", "Waveform", "CLinux"], swiftSettings: strict),
    .target(
      name: "Processing",
      dependencies: [
        "Terms", "Workers", "AudioIO", "Labels", "Media", "Waveform", "Denoise", "Voice", "Loudness", "CKernels",
        "CLinux",
      ],
      swiftSettings: strict),
    .target(
      name: "Jobs", dependencies: ["Terms", "Storage", "Workers", "Denoise", "Labels", "Waveform", "CLinux"],
      swiftSettings: strict),
    .target(name: "Webhooks", dependencies: ["Storage", "CCurl"], swiftSettings: strict),
    .target(
      name: "AudioService",
      dependencies: [
        "Terms", "HTTP", "Storage", "PostgresStorage", "S3Storage", "Labels", "Workers", "Jobs", "Webhooks",
        "Waveform", "Denoise", "CLinux", "CViewer",
        .product(name: "Logging", package: "swift-log"),
      ],
      swiftSettings: strict),
    .executableTarget(
      name: "stillwave",
      dependencies: [
        "Terms", "AudioIO", "AudioService", "Denoise", "HTTP", "Jobs", "Labels", "Media", "Processing", "Storage",
        "Waveform", "Webhooks", "Workers", "CLinux", "CVersion",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ],
      swiftSettings: strict),

    .testTarget(
      name: "HTTPTests", dependencies: ["Terms", "HTTP", "CLinux", "CZlib", "CZstd", "Randomness"],
      swiftSettings: strict),
    .testTarget(
      name: "WaveformTests", dependencies: ["Terms", "Waveform", "CPNG", "Randomness"],
      resources: [.copy("Golden"), .copy("Pictures")], swiftSettings: strict + computing),
    .testTarget(
      name: "DenoiseTests", dependencies: ["Terms", "CKernels", "CPeaks", "Denoise", "Randomness"],
      swiftSettings: strict + computing),
    .testTarget(
      name: "LoudnessTests", dependencies: ["Terms", "Loudness", "Randomness"], swiftSettings: strict + computing),
    .testTarget(name: "LabelsTests", dependencies: ["Labels", "Randomness"], swiftSettings: strict),
    .testTarget(
      name: "StorageTests",
      dependencies: [
        "Terms", "CSQLite", "Storage", "PostgresServer", "PresentRows", "S3Storage", "ObjectStore", "Randomness",
      ],
      swiftSettings: strict),
    .testTarget(
      name: "PostgresStorageTests",
      dependencies: ["PostgresStorage", "PostgresServer", "PresentRows", "Storage", "Terms", "Randomness"],
      swiftSettings: strict),
    // Starts a PostgreSQL server of its own; for tests.
    .target(
      name: "PostgresServer", dependencies: ["PostgresStorage"], path: "Tests/PostgresServer", swiftSettings: strict),
    .testTarget(
      name: "S3StorageTests",
      dependencies: ["Terms", "S3Storage", "ObjectStore", "PresentRows", "Storage", "Randomness"],
      swiftSettings: strict),
    // An S3-compatible store that verifies signatures and fails on request; for tests.
    .target(name: "ObjectStore", dependencies: ["HTTP", "Storage"], path: "Tests/ObjectStore", swiftSettings: strict),
    // The same as a program, for tests that block their threads.
    .executableTarget(
      name: "BucketServer", dependencies: ["ObjectStore"], path: "Tests/BucketServer", swiftSettings: strict),
    .testTarget(
      name: "MediaTests", dependencies: ["Media", "Randomness", "Terms", "Workers"], exclude: ["Programs"],
      swiftSettings: strict),
    .testTarget(
      name: "AudioIOTests", dependencies: ["AudioIO", "Randomness", "SoundFiles", "Terms"],
      swiftSettings: strict + computing),
    // Sound files, whole and damaged; for tests.
    .target(
      name: "SoundFiles", dependencies: ["AudioIO", "Randomness", "Terms"], path: "Tests/SoundFiles",
      swiftSettings: strict + computing),
    .testTarget(
      name: "ProcessingTests",
      dependencies: [
        "Terms", "Processing", "AudioIO", "Media", "Waveform", "Denoise", "Loudness", "Fenced", "Randomness",
        "SoundFiles", "Workers",
      ],
      swiftSettings: strict),
    .testTarget(
      name: "AudioServiceTests",
      dependencies: [
        "Terms", "AudioService", "AudioIO", "Denoise", "HTTP", "Jobs", "Labels", "Media", "PostgresStorage",
        "Processing", "S3Storage", "Storage", "Waveform", "Webhooks", "CLinux", "Contract", "PresentRows", "Randomness",
        "Receivers", "Workers",
        .product(name: "Logging", package: "swift-log"),
      ],
      swiftSettings: strict),
    .testTarget(
      name: "JobsTests",
      dependencies: [
        "Terms", "Jobs", "AudioIO", "Denoise", "Labels", "LeaseNode", "Media", "Processing", "Storage", "PresentRows",
        "Randomness", "Workers",
      ],
      swiftSettings: strict),
    // Works on the jobs of a catalog that it shares with other processes; for tests.
    .executableTarget(
      name: "LeaseNode", dependencies: ["AudioIO", "Jobs", "Storage", "Terms"], path: "Tests/LeaseNode",
      swiftSettings: strict),
    // Claims jobs through a catalog in PostgreSQL as fast as it can; for deploy/cluster-test.
    .executableTarget(
      name: "ClaimRate", dependencies: ["PostgresStorage", "Storage", "Terms"], path: "Tests/ClaimRate",
      swiftSettings: strict),
    .testTarget(
      name: "WebhooksTests", dependencies: ["Terms", "Webhooks", "Storage", "PresentRows", "Receivers"],
      swiftSettings: strict),
    // Rows of the present time; for tests.
    .target(name: "PresentRows", dependencies: ["Storage", "Terms"], path: "Tests/PresentRows", swiftSettings: strict),
    // Receives webhooks; for tests.
    .target(name: "Receivers", dependencies: ["HTTP"], path: "Tests/Receivers", swiftSettings: strict),
    // The seed for random choices in tests.
    .target(name: "Randomness", path: "Tests/Randomness", swiftSettings: strict),
    // Parses openapi.yaml and validates responses against its schemas; for tests.
    .target(
      name: "Contract", dependencies: [.product(name: "Yams", package: "Yams")], path: "Tests/Contract",
      swiftSettings: strict),
    .testTarget(
      name: "EndToEndTests",
      dependencies: [
        "stillwave", "BucketServer", "Contract", "CSndfile", "FailingProgram", "Fenced", "PostgresServer", "Randomness",
        "S3Storage", "Sounds",
      ],
      exclude: ["Fixtures"], swiftSettings: strict),
    // Sound made and measured in plain loops, independently of the program; for tests.
    .target(name: "Sounds", path: "Tests/Sounds", swiftSettings: strict + computing),
    // Fences itself in like a worker and tries to escape; for tests.
    .executableTarget(
      name: "Fenced", dependencies: ["CLinux", "CSeccomp"], path: "Tests/Fenced",
      // Without shared libraries of the toolchain, because a program in ffmpeg's place couldn't open them.
      linkerSettings: [.unsafeFlags(["-static-stdlib"])]),
    // Stands in for an ffmpeg that fails; for tests.
    .executableTarget(
      name: "FailingProgram", path: "Tests/FailingProgram", linkerSettings: [.unsafeFlags(["-static-stdlib"])]),
    .executableTarget(
      name: "Benchmarks", dependencies: ["AudioIO", "Storage", "Terms", "Waveform", "CSndfile"],
      path: "Tests/Benchmarks",
      exclude: ["denoise.md", "changing-noise.py", "noise-levels.sh", "Anchors"],
      swiftSettings: strict),
  ],
  swiftLanguageModes: [.v6],
  cLanguageStandard: .gnu2x
)

if let chosenTests {
  package.targets.removeAll { target in
    switch target.type {
    case .test: chosenTests != ["all"] && !chosenTests.contains(target.name)
    default: ["Benchmarks", "ClaimRate"].contains(target.name)
    }
  }
}

// lld links the tests in 2 s of processor time, the default linker in 10.
for target in package.targets where [.executable, .test].contains(target.type) {
  target.linkerSettings = (target.linkerSettings ?? []) + [.unsafeFlags(["-use-ld=lld"])]
}
