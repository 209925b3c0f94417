// SPDX-License-Identifier: Apache-2.0
/// A library that tests open when they want it.
extern "C" {

__attribute__((visibility("default"))) int opened_library_version() {
  return 90'201;
}

__attribute__((visibility("default"))) int opened_library_twice(int number) {
  return 2 * number;
}
}
