import CLinux
import Glibc
import Workers

/// Protects this process's secrets from other processes of the same user.
package enum OwnProcess {
  /// Closes this process's memory, environment, and descriptors in /proc to processes without root's rights. Afterward,
  /// the process makes no core dumps.
  package static func closeToOthers() { stillwave_close_to_others() }

  /// Removes an environment variable and overwrites its value in place: /proc/self/environ shows the bytes that the
  /// process started with, and so does a child's until it executes another program. Call it before other threads can
  /// read or change the environment.
  package static func eraseVariable(_ name: String) { unsafe stillwave_erase_variable(name) }

  /// Overwrites the value of a command-line flag in place, because everyone on the machine can read it.
  package static func eraseArgument(_ name: String) { unsafe stillwave_erase_argument(name) }

  /// Moves this process into a control group, whose folder this is. Throws `.system` if that fails.
  package static func join(group: String) throws(ProcessingError) {
    let path = group + "/cgroup.procs"
    let file = unsafe open(path, O_WRONLY | O_CLOEXEC)
    guard file >= 0 else { throw .system(operation: "open", path: path, errno: errno) }
    defer { close(file) }
    let text = Array("\(getpid())".utf8)
    guard unsafe write(file, text, text.count) == text.count else {
      throw .system(operation: "write", path: path, errno: errno)
    }
  }

  /// Makes all inherited descriptors, except the standard ones, close when a child starts another program.
  package static func keepDescriptors() { stillwave_keep_descriptors() }
}
