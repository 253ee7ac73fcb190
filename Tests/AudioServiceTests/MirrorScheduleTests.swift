import Testing

@testable import AudioService

/// When waveforms of other nodes are fetched, in virtual time.
@Suite struct MirrorScheduleTests {
  /// Runs a schedule and notes when it fetches. `blocks` is what the original has at a time, all of which a fetch gets;
  /// a fetch takes `seconds`. `looks` are the times at which somebody looks.
  private func fetches(
    until end: Double, looks: [Double], seconds: Double = 0, failsBefore: Double = 0, blocks: (Double) -> Int64,
    isEnd: (Double) -> Bool = { _ in false }
  ) -> [Double] {
    enum Event { case look, tick, fetched(Int64) }
    var schedule = MirrorSchedule()
    var (events, copied, times): ([(Double, Event)], Int64, [Double]) = (looks.map { ($0, .look) }, 0, [])
    while let next = events.indices.min(by: { events[$0].0 < events[$1].0 }), events[next].0 < end {
      let (now, event) = events.remove(at: next)
      let action: MirrorSchedule.Action
      switch event {
      case .look:
        action = schedule.looked(at: now, .init(blocks: blocks(now) - copied, isEnd: isEnd(now)))
      case .tick:
        action = schedule.tick(at: now, .init(blocks: blocks(now) - copied, isEnd: isEnd(now)))
      case .fetched(let count):
        if now >= failsBefore { copied = count }
        action = schedule.fetched(at: now, successfully: now >= failsBefore)
      }
      switch action {
      case .nothing: break
      case .wait(let seconds): events.append((now + seconds, .tick))
      case .fetch:
        times.append(now)
        events.append((now + seconds, .fetched(blocks(now))))
      }
    }
    return times
  }

  @Test("without anybody who looks, nothing is fetched")
  func nobody() { #expect(fetches(until: 100, looks: []) { Int64($0 * 100) } == []) }

  @Test("while somebody looks often, it is fetched once a second, and for five seconds more")
  func often() {
    let looks = stride(from: 10, to: 20, by: 0.125).map { $0 }
    #expect(fetches(until: 100, looks: looks) { Int64($0 * 100) } == (10...24).map(Double.init))
    let slow = fetches(until: 100, looks: looks, seconds: 0.5) { Int64($0 * 100) }
    #expect(slow == stride(from: 10.0, to: 25, by: 1.5).map { $0 })
  }

  @Test("who looks again later gets what is new at once")
  func later() { #expect(fetches(until: 100, looks: [10, 50]) { $0 < 30 ? 20 : 40 } == [10, 50]) }

  @Test("few new blocks wait for more, but not for long")
  func fewBlocks() {
    let looks = (0..<40).map { Double($0) + 0.5 }
    let times = fetches(until: 40, looks: looks) { Int64($0 * 2) }
    #expect(times == stride(from: 0.5, to: 40, by: 4).map { $0 })
    #expect(fetches(until: 40, looks: looks) { _ in 0 } == [])
  }

  @Test("the end is fetched without waiting for more")
  func end() {
    let times = fetches(until: 3, looks: [0, 1, 2]) {
      Int64($0 < 1 ? 1 : 2)
    } isEnd: {
      (1..<2).contains($0)
    }
    #expect(times == [0, 1])
  }

  @Test("after a failure, the next attempt comes five seconds later")
  func failures() {
    let times = fetches(until: 30, looks: (0..<30).map { Double($0) }, failsBefore: 12) { _ in 100 }
    #expect(times == [0, 5, 10, 15])
  }
}
