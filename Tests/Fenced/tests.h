#pragma once

// Makes each call that no fenced process may make, with arguments of 0. Returns 0 if all of them fail with EPERM, and
// else prints the names of the others and returns their number.
int refused_calls(void);

// What a hostile program in the place of ffmpeg or ffprobe does.
int be_hostile(const char *name);
