import PresentRows
import Storage
import Testing

@testable import Jobs

@Suite struct LeaseKeeperTests {
  private let token = AttemptToken(job: JobID(), attempt: 1, nonce: AttemptToken.newNonce())
  private let other = AttemptToken(job: JobID(), attempt: 1, nonce: AttemptToken.newNonce())

  @Test("a worker that can't renew its lease is stopped 5 s before the lease ends")
  func margin() {
    var keeper = LeaseKeeper(LeaseHolder.Terms())
    #expect(keeper.granted(token, askedAt: 100) == 125)
    #expect(!keeper.isEnding(token, at: 124.9) && keeper.isEnding(token, at: 125))
    #expect(!keeper.isEnding(other, at: 1000))
  }

  @Test("a lease counts from when it was asked for, and an answer that comes late doesn't shorten it")
  func renewal() {
    var keeper = LeaseKeeper(LeaseHolder.Terms())
    _ = keeper.granted(token, askedAt: 100)
    #expect(keeper.prolonged(token, askedAt: 110) == 135)
    #expect(keeper.prolonged(token, askedAt: 105) == 135)
    #expect(!keeper.isEnding(token, at: 130))
    keeper.ended(token)
    #expect(keeper.tokens.isEmpty && !keeper.isEnding(token, at: 1000))
  }

  @Test("a lease isn't kept because of a renewal that was answered after the attempt had ended")
  func late() {
    var keeper = LeaseKeeper(LeaseHolder.Terms())
    _ = keeper.granted(token, askedAt: 100)
    keeper.ended(token)
    #expect(keeper.prolonged(token, askedAt: 105) == nil)
    #expect(keeper.tokens.isEmpty)
  }
}
