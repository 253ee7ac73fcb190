import CLinux

/// How this process keeps its secrets from others of the same user.
package enum OwnProcess {
  /// Closes this process's memory, environment and descriptors in /proc to other processes that don't have root's
  /// rights. There is no core dump after this.
  package static func closeToOthers() { stillwave_close_to_others() }

  /// Removes an environment variable and overwrites its value in place: /proc/self/environ shows the bytes that the
  /// process began with, and so does a child's until it has become another program. Call it before there are other
  /// threads that read or change the environment.
  package static func eraseVariable(_ name: String) { unsafe stillwave_erase_variable(name) }

  /// Overwrites the value of a flag of the command line in place, which everyone on the machine can read.
  package static func eraseArgument(_ name: String) { unsafe stillwave_erase_argument(name) }

  /// Keeps what this process has inherited open, besides its standard descriptors, from its children.
  package static func keepDescriptors() { stillwave_keep_descriptors() }
}
