#pragma once

// Makes every call that the fence forbids, with arguments of 0. Returns 0 if all fail with EPERM; otherwise prints the
// names of the calls that didn't and returns their number.
int refused_calls(void);

// Acts as a hostile program in place of ffmpeg or ffprobe.
int be_hostile(const char *name);
