// A file of labels, parsed as what its content says and as one of the formats, and written again in one. Its bytes
// choose these, so that each input takes little time and all of them are met.

import Labels

func fuzzLabels(_ input: [UInt8]) {
  let choice = input.reduce(0) { ($0 &* 31 &+ Int($1)) & 0xFFFF }
  let (readable, writable) = (LabelFormat.readable, LabelFormat.writable)
  for format in [nil, readable[choice % readable.count]] {
    guard let file = try? LabelFile(parsing: input, as: format, duration: MediaTime(seconds: 60)) else { continue }
    check(areValid(file.labels), "\(String(describing: format)): the labels are not valid")
    checkWriting(file.labels, writable[choice / readable.count % writable.count])
  }
}

func areValid(_ labels: [Label]) -> Bool {
  let areSorted = zip(labels, labels.dropFirst()).allSatisfy { $0.start <= $1.start }
  return areSorted
    && labels.allSatisfy { label in
      let areInOrder = zip(label.words, label.words.dropFirst()).allSatisfy { $0.start <= $1.start }
      return label.start <= label.end && areInOrder
        && label.words.allSatisfy {
          label.start <= $0.start && $0.start <= $0.end && $0.end <= label.end && !$0.text.isEmpty
        }
    }
}

/// What was written can be read, unless its text looks like markup, and is the same unless something was left out.
private func checkWriting(_ labels: [Label], _ format: LabelFormat) {
  let written = WrittenLabels(labels, as: format)
  guard let again = try? LabelFile(parsing: written.bytes, as: format) else {
    return check(written.leftOut.contains(.markup), "\(format): a written file can't be read")
  }
  check(!written.leftOut.isEmpty || again.labels == labels, "\(format): the labels change")
}
