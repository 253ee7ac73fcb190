extension ProblemExplanation {
  static let ofAccess = [
    Self(
      "audit_unwritable", "The audit log can't be written",
      "The service records every change, and at the moment it can't, so it makes none.",
      "Try again after “Retry-After” seconds. Operators: check the disk of --audit-log."),
    Self(
      "hook_refused", "The operator doesn't accept the upload",
      "The service asks its operator's own service before it accepts an upload, and that refused.",
      "Ask the operator of the service."),
    Self(
      "hook_unavailable", "The service that decides about uploads doesn't answer",
      "The service asks its operator's own service before it accepts an upload, and that didn't answer in time or as "
        + "expected.", "Try again after “Retry-After” seconds. Operators: --hook names the service that is asked."),
    Self(
      "limit_waiting_uploads", "This client waits for decisions about too many uploads",
      "The number of uploads of one client that may wait for the operator's own service is limited.",
      "Send fewer files at a time, and try again after “Retry-After” seconds."),
    Self(
      "keys_off", "The service has no keys",
      "Tokens are minted by keys. This service runs without any, so everyone who can reach it may use it.",
      "Leave the token out. Operators: --keys names the file of keys."),
    Self(
      "limit_invalid_keys", "The client has sent too many invalid keys",
      "Keys or tokens that aren't valid are refused more slowly after the first ones, and at last not looked at.",
      "Correct the key, and try again after “Retry-After” seconds."),
    Self(
      "limit_job_seconds_per_day", "The tenant's jobs have run for as long as they may today",
      "The time that a tenant's jobs, previews, spectra, parts and pictures may take on a day (UTC) is limited.",
      "Try again after “Retry-After” seconds."),
    Self(
      "limit_recordings", "The tenant has as many recordings as it may",
      "The number of recordings that a tenant may have is limited.", "Delete recordings that you no longer need."),
    Self(
      "limit_requests_per_second", "The tenant sends too many requests",
      "The number of requests that a tenant may send per second is limited.",
      "Send fewer, and try again after “Retry-After” seconds. The fields “RateLimit” say how many more there may be."),
    Self(
      "limit_running_jobs", "The tenant's jobs may not run",
      "None of the tenant's jobs may run at the moment.", "Ask the operator of the service."),
    Self(
      "limit_stored_bytes", "The tenant has stored as much as it may",
      "The total size of what is kept for a tenant is limited: recordings with their working copies, waveforms and "
        + "conversions, labels and noise profiles.",
      "Delete recordings or noise profiles that you no longer need."),
    Self(
      "missing_scope", "The key or token doesn't allow this",
      "The key lacks the scope that this call needs, or the token is for something else.",
      "Use a key with the scope that “detail” names."),
    Self(
      "token_used", "The token has been used",
      "A token for an upload is for one upload, and that has been made.", "Ask for another token."),
    Self(
      "unauthorized", "There is no valid key",
      "The request has no key or token, or one that isn't known, was revoked, or has expired.",
      "Send “Authorization: Bearer <key>”, or a token as “?token=”. "
        + "Operators: “stillwave keys” writes the file of keys."
    ),
  ]
}
