import PresentRows
import Storage
import Testing

@testable import Jobs

/// Tests only the order; there is no clock and there are no children.
struct JobScheduleTests {
  /// The number of samples in `count` hours of stereo.
  private static func hours(_ count: Double) -> Double { count * 3600 * 44_100 * 2 }

  private let alone = Client(key: "alone")
  private let long = DenoiseJob.cost(samples: hours(2))
  private let short = DenoiseJob.cost(samples: hours(0.01))
  private let waveform = WaveformJob.cost(samples: hours(1))
  private let longWaveform = WaveformJob.cost(samples: hours(2))

  @Test func equallyLongJobsBeginInOrder() {
    var schedule = JobSchedule(places: 1)
    let ids = (0..<8).map { _ in JobID() }
    var begun: [JobID] = []
    for (index, id) in ids.enumerated() {
      schedule.add(id, short, for: alone)
      // The first job is already running when the others arrive.
      if index == 0, let first = schedule.begin() { begun.append(first) }
    }
    while let last = begun.last {
      schedule.end(last)
      guard let next = schedule.begin() else { break }
      begun.append(next)
    }
    #expect(begun == ids)
  }

  @Test func aShortJobOvertakesWaitingLongOnes() {
    var schedule = JobSchedule(places: 1)
    let (first, second, quick) = (JobID(), JobID(), JobID())
    schedule.add(first, long, for: alone)
    #expect(schedule.begin() == first)
    schedule.add(second, long, for: alone)
    schedule.add(quick, short, for: alone)
    #expect(schedule.begin() == nil)
    schedule.end(first)
    #expect(schedule.begin() == quick)
    schedule.end(quick)
    #expect(schedule.begin() == second)
  }

  @Test func aLongJobIsOvertakenByAtMostItsOwnAmountOfWork() {
    var schedule = JobSchedule(places: 1)
    let big = JobID()
    schedule.add(big, long, for: alone)
    var passed = 0.0
    for _ in 0..<100_000 {
      schedule.add(JobID(), short, for: alone)
      guard let next = schedule.begin() else { break }
      schedule.end(next)
      if next == big { break }
      passed += short.seconds
    }
    #expect(passed > 0.9 * long.seconds && passed <= long.seconds)
  }

  @Test("a newcomer's job waits only for running jobs, whatever the crowd's jobs are", arguments: [1, 2, 4])
  func newcomer(places: Int) {
    for (theirs, ours) in [(waveform, waveform), (short, long), (waveform, long)] {
      var schedule = JobSchedule(places: places)
      for _ in 0..<1000 { schedule.add(JobID(), theirs, for: Client(key: "crowd")) }
      var running: [JobID] = []
      while let next = schedule.begin() { running.append(next) }
      #expect(running.count == places)
      let newcomer = JobID()
      schedule.add(newcomer, ours, for: alone)
      schedule.end(running[0])
      #expect(schedule.begin() == newcomer)
    }
  }

  @Test func aClientWithALongRunningJobStillGetsItsTurn() {
    var schedule = JobSchedule(places: 2)
    let (own, shown) = (JobID(), JobID())
    schedule.add(own, long, for: alone)
    #expect(schedule.begin() == own)
    for _ in 0..<10 { schedule.add(JobID(), waveform, for: Client(key: "crowd")) }
    let first = schedule.begin()
    schedule.add(shown, waveform, for: alone)
    if let first { schedule.end(first) }
    #expect(schedule.begin() == shown)
  }

  @Test func aSharedJobBeginsOnceInTheFirstTurnOfEitherClient() {
    var schedule = JobSchedule(places: 1)
    let jobs = (0..<5).map { _ in JobID() }
    for job in jobs { schedule.add(job, waveform, for: Client(key: "crowd")) }
    #expect(schedule.begin() == jobs[0])
    for _ in 0..<2 { schedule.join(jobs[4], for: alone) }
    // Running and unknown jobs aren't waited for.
    schedule.join(jobs[0], for: alone)
    schedule.join(JobID(), for: alone)
    var begun: [JobID] = []
    var running: JobID? = jobs[0]
    while let last = running {
      schedule.end(last)
      running = schedule.begin()
      if let running { begun.append(running) }
    }
    #expect(begun == [jobs[4], jobs[1], jobs[2], jobs[3]])
    #expect(!schedule.hasWaiting && schedule.freePlaces == 1)
  }

  @Test func longDenoiseJobsLeaveAPlaceForOthers() {
    var schedule = JobSchedule(places: 3)
    let ids = (0..<4).map { _ in JobID() }
    for id in ids { schedule.add(id, long, for: alone) }
    #expect(schedule.begin() == ids[0])
    #expect(schedule.begin() == ids[1])
    #expect(schedule.begin() == nil && schedule.freePlaces == 1)
    let (quick, shown) = (JobID(), JobID())
    schedule.add(quick, short, for: alone)
    #expect(schedule.begin() == quick)
    schedule.end(quick)
    schedule.add(shown, waveform, for: alone)
    #expect(schedule.begin() == shown)
    schedule.end(ids[0])
    #expect(schedule.begin() == ids[2])
  }

  @Test func longDenoiseJobsOfDifferentClientsLeaveAPlaceToo() {
    var schedule = JobSchedule(places: 2)
    let (first, second, shown) = (JobID(), JobID(), JobID())
    schedule.add(first, long, for: Client(key: "a"))
    schedule.add(second, long, for: Client(key: "b"))
    #expect(schedule.begin() == first)
    #expect(schedule.begin() == nil && schedule.freePlaces == 1)
    schedule.add(shown, longWaveform, for: Client(key: "c"))
    #expect(schedule.begin() == shown)
    schedule.end(first)
    #expect(schedule.begin() == second)
  }

  @Test func oneClientsLongWaveformsLeaveAPlaceForAnothers() {
    var schedule = JobSchedule(places: 2)
    let ids = (0..<3).map { _ in JobID() }
    for id in ids { schedule.add(id, longWaveform, for: Client(key: "crowd")) }
    #expect(schedule.begin() == ids[0])
    #expect(schedule.begin() == nil && schedule.freePlaces == 1)
    let shown = JobID()
    schedule.add(shown, longWaveform, for: alone)
    #expect(schedule.begin() == shown)
    schedule.end(ids[0])
    #expect(schedule.begin() == ids[1])
    schedule.end(shown)
    schedule.add(shown, long, for: alone)
    #expect(schedule.begin() == shown)
  }

  @Test func longJobsRunEvenIfThereIsOnlyOnePlace() {
    var schedule = JobSchedule(places: 1)
    let id = JobID()
    schedule.add(id, long, for: alone)
    #expect(schedule.begin() == id)
  }

  @Test func aRemovedJobIsNotBegun() {
    var schedule = JobSchedule(places: 2)
    let (kept, removed) = (JobID(), JobID())
    schedule.add(removed, short, for: alone)
    schedule.add(kept, short, for: alone)
    schedule.remove(removed)
    #expect(schedule.begin() == kept && schedule.begin() == nil)
    #expect(!schedule.hasWaiting)
  }
}
