#pragma once

/// Returns the commit that the program was built from; empty if that isn't known.
const char *_Nonnull stillwave_commit(void);
