import CLinux
import Foundation
import Glibc
import Testing

/// What malloc gives back to the system.
@Suite struct ReturnedMemoryTests {
  /// Returns addresses of memory that a thread has used and freed. It freed the small blocks at the end last, so that
  /// malloc joins everything with the free end of the thread's arena only later.
  private func usedByAThread() -> [UInt] {
    final class Used: @unchecked Sendable {  // read when the thread has ended
      var addresses: [UInt] = []
    }
    let (used, ended) = (Used(), DispatchSemaphore(value: 0))
    // Not on the thread: to free it there would return memory.
    used.addresses.reserveCapacity(4020)
    Thread {
      // What stays allocated at the start of the arena keeps the thread's end from returning everything.
      _ = unsafe malloc(2000)
      for _ in 0..<4000 { used.addresses.append(Self.allocate(4096)) }
      for _ in 0..<20 { used.addresses.append(Self.allocate(40)) }
      for index in 1...4000 { Self.free(used.addresses[4000 - index]) }
      for index in 4000..<4020 { Self.free(used.addresses[index]) }
      ended.signal()
    }.start()
    ended.wait()
    return Array(used.addresses.prefix(4000))
  }

  private static func free(_ address: UInt) { unsafe Glibc.free(UnsafeMutableRawPointer(bitPattern: address)) }

  private static func allocate(_ count: Int) -> UInt {
    let block = unsafe UnsafeMutableRawPointer(malloc(count))
    if let block = unsafe block { unsafe memset(block, 1, count) }
    return UInt(bitPattern: block)
  }

  private func residentCount(_ addresses: [UInt]) -> Int {
    addresses.count { address in
      var state: UInt8 = 0
      // Fails if nothing is mapped there any more.
      return unsafe mincore(UnsafeMutableRawPointer(bitPattern: address & ~4095), 1, &state) == 0 && state & 1 != 0
    }
  }

  @Test(.disabled(if: ProcessInfo.processInfo.environment["SANITIZER"] != nil, "a sanitizer has its own malloc"))
  func theMemoryOfAThreadThatHasEndedIsReturned() {
    stillwave_bound_kept_memory(32 << 20, 16)
    let used = usedByAThread()
    stillwave_trim_memory()
    // Other tests may use some of it by now.
    #expect(residentCount(used) < used.count / 2)
  }
}
