import ArgumentParser
import Glibc

/// The flag, else the environment variable of the same name, else the default: `--max-upload-bytes`,
/// `STILLWAVE_MAX_UPLOAD_BYTES`. Throws where the variable's text is no such value.
func setting<Value: LosslessStringConvertible>(
  _ name: String, _ flag: Value?, default standard: Value
) throws -> Value {
  try given(name, flag) ?? standard
}

/// The same without a default.
private func given<Value: LosslessStringConvertible>(_ name: String, _ flag: Value?) throws -> Value? {
  if let flag { return flag }
  let variable = "STILLWAVE_" + name.uppercased().map { $0 == "-" ? "_" : String($0) }.joined()
  guard let pointer = unsafe getenv(variable) else { return nil }
  let text = unsafe String(cString: pointer)
  guard let value = Value(text) else { throw ValidationError("\(variable) can't be “\(text)”.") }
  return value
}

/// The same for a value that must be greater than 0.
func positive<Value: LosslessStringConvertible & Comparable & Numeric>(
  _ name: String, _ flag: Value?, default standard: Value
) throws -> Value {
  try positive(name, flag) ?? standard
}

/// The same without a default.
func positive<Value: LosslessStringConvertible & Comparable & Numeric>(_ name: String, _ flag: Value?) throws -> Value?
{
  guard let value = try given(name, flag) else { return nil }
  guard value > 0 else { throw ValidationError("--\(name) must be greater than 0; it was \(value).") }
  return value
}

/// The same for a time or a rate: at most ten years' seconds, which stands for never.
func positive(_ name: String, _ flag: Double?, default standard: Double) throws -> Double {
  let value = try setting(name, flag, default: standard)
  guard value > 0, value <= 315_360_000 else {
    throw ValidationError("--\(name) must be greater than 0 and at most 315360000; it was \(value).")
  }
  return value
}

/// The same for a list, separated by commas; empty by default.
func list(_ name: String, _ flag: String?) throws -> [String] {
  try setting(name, flag, default: "").split { $0 == "," || $0 == " " }.map(String.init)
}
