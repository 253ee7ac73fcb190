import CLinux

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

  /// Makes all inherited descriptors, except the standard ones, close when a child starts another program.
  package static func keepDescriptors() { stillwave_keep_descriptors() }
}
