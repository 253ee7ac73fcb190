import Storage
import Testing

@testable import AudioService

/// Order alone: no clock, no children.
struct JobScheduleTests {
  /// Samples of so many hours of stereo.
  private static func hours(_ count: Double) -> Double { count * 3600 * 44_100 * 2 }

  private let long = JobSchedule.Work(.denoise, samples: hours(2))
  private let short = JobSchedule.Work(.denoise, samples: hours(0.01))
  private let waveform = JobSchedule.Work(.waveform, samples: hours(2))

  @Test func whatIsEquallyLongIsBegunInTheOrderItCame() {
    var schedule = JobSchedule(places: 1)
    let ids = (0..<8).map { _ in JobID() }
    var begun: [JobID] = []
    for (index, id) in ids.enumerated() {
      schedule.add(id, short)
      // The first runs already when the others come.
      if index == 0, let first = schedule.begin() { begun.append(first) }
    }
    while let last = begun.last {
      schedule.end(last)
      guard let next = schedule.begin() else { break }
      begun.append(next)
    }
    #expect(begun == ids)
  }

  @Test func aShortJobPassesLongOnesThatWait() {
    var schedule = JobSchedule(places: 1)
    let (first, second, quick) = (JobID(), JobID(), JobID())
    schedule.add(first, long)
    #expect(schedule.begin() == first)
    schedule.add(second, long)
    schedule.add(quick, short)
    #expect(schedule.begin() == nil)
    schedule.end(first)
    #expect(schedule.begin() == quick)
    schedule.end(quick)
    #expect(schedule.begin() == second)
  }

  @Test func aLongJobIsPassedByNoMoreWorkThanItIsItself() {
    var schedule = JobSchedule(places: 1)
    let big = JobID()
    schedule.add(big, long)
    var passed = 0.0
    for _ in 0..<100_000 {
      schedule.add(JobID(), short)
      guard let next = schedule.begin() else { break }
      schedule.end(next)
      if next == big { break }
      passed += short.seconds
    }
    #expect(passed > 0.9 * long.seconds && passed <= long.seconds)
  }

  @Test func longDenoisingLeavesAPlaceToTheRest() {
    var schedule = JobSchedule(places: 3)
    let ids = (0..<4).map { _ in JobID() }
    for id in ids { schedule.add(id, long) }
    #expect(schedule.begin() == ids[0])
    #expect(schedule.begin() == ids[1])
    #expect(schedule.begin() == nil && schedule.freePlaces == 1)
    let (quick, shown) = (JobID(), JobID())
    schedule.add(quick, short)
    #expect(schedule.begin() == quick)
    schedule.end(quick)
    schedule.add(shown, waveform)
    #expect(schedule.begin() == shown)
    schedule.end(ids[0])
    #expect(schedule.begin() == ids[2])
  }

  @Test func whereThereIsOnePlaceLongJobsHaveItToo() {
    var schedule = JobSchedule(places: 1)
    let id = JobID()
    schedule.add(id, long)
    #expect(schedule.begin() == id)
  }

  @Test func aJobThatIsTakenBackIsNotBegun() {
    var schedule = JobSchedule(places: 2)
    let (kept, removed) = (JobID(), JobID())
    schedule.add(removed, short)
    schedule.add(kept, short)
    schedule.remove(removed)
    #expect(schedule.begin() == kept && schedule.begin() == nil)
    schedule.add(removed, short)
    schedule.removeAll()
    #expect(!schedule.hasWaiting && schedule.begin() == nil)
  }
}
