// Statics that live as long as the process. A daemon thread may be inside the core, or inside LLVM, while the process
// ends; destructors would take the ground from under it. The link replaces their registration (CMakeLists.txt) in all
// that is linked into this module; the memory is the system's to take back, and nothing here is left to write.

extern "C" int __wrap___cxa_atexit(void (*)(void*), void*, void*);

extern "C" int __wrap___cxa_atexit(void (*)(void*), void*, void*) { return 0; }
