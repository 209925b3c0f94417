// SPDX-License-Identifier: Apache-2.0
// Part of every sanitised executable: what the sanitizers are told before main, however the
// program is started. The names are the sanitizers' own.

extern "C" {

const char* __asan_default_options() {
  return "strict_string_checks=1:check_initialization_order=1";
}

const char* __ubsan_default_options() {
  return "print_stacktrace=1";
}

const char* __lsan_default_options() {
  return "print_suppressions=0";
}

// Memory that hwloc, Open MPI and PMIx keep until the process ends. Their callers of vasprintf
// leave no frames behind it; Trireme has none.
const char* __lsan_default_suppressions() {
  return "leak:libhwloc\n"
         "leak:hwloc_\n"
         "leak:libmpi\n"
         "leak:libopen-rte\n"
         "leak:libopen-pal\n"
         "leak:mca_\n"
         "leak:libpmix\n"
         "leak:libevent\n"
         "leak:__vasprintf_internal\n";
}

// Their plug-ins would be gone when leaks are reported, and could not be told from ours.
int dlclose(void*) {
  return 0;
}
}
