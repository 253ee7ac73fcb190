// Makes a program believe that everything it has written is on the disk: the control of the power cuts.

int fsync(int descriptor) { return 0; }
int fdatasync(int descriptor) { return 0; }
int syncfs(int descriptor) { return 0; }
