// Part of every sanitised executable: what the sanitizers are told before main, however the
// program is started. The names are the sanitizers' own.

extern "C" {

const char* __asan_default_options() {
  return "strict_string_checks=1:check_initialization_order=1";
}

const char* __ubsan_default_options() {
  return "print_stacktrace=1";
}
}
