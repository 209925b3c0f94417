// SPDX-License-Identifier: Apache-2.0
#include "trireme/runtime/open_files.hpp"

#include <catch2/catch.hpp>
#include <sys/resource.h>

#include <algorithm>

using namespace trireme;

TEST_CASE("a rank may open as many files as its hard limit allows, within reason") {
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  auto lowered = before;
  lowered.rlim_cur = 256;
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &lowered) == 0);
  runtime::raise_open_files();
  rlimit after{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &after) == 0);
  CHECK(after.rlim_cur == std::min<rlim_t>(before.rlim_max, 65536));
  ::setrlimit(RLIMIT_NOFILE, &before);
}

TEST_CASE("a rank that needs more files than it may open says so first") {
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  auto lowered = before;
  lowered.rlim_cur = 400;
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &lowered) == 0);
  CHECK(runtime::open_files_shortage(144).empty());
  const auto text = runtime::open_files_shortage(145);
  ::setrlimit(RLIMIT_NOFILE, &before);
  CHECK_THAT(text, Catch::Contains("may open 400 files and needs about 401"));
  CHECK_THAT(text, Catch::Contains("exchanges data with 145 others"));
}
