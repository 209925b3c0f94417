// SPDX-License-Identifier: Apache-2.0
#include "trireme/topology/cpu_set.hpp"

#include <catch2/catch.hpp>

using trireme::topology::CpuSet;

TEST_CASE("a set of CPUs sorts its numbers and drops repeats") {
  CHECK(CpuSet({3, 1, 2, 1}).pus() == std::vector<int>{1, 2, 3});
  CHECK(CpuSet({8, 0, 1, 2, 3}).text() == "0-3,8");
  CHECK(CpuSet{}.text() == "none");
}

TEST_CASE("a set of CPUs reads the kernel's list form back") {
  for (const char* text : {"0", "0-3,8", "1,3,5-6,255"}) {
    CHECK(CpuSet::parse(text).value().text() == text);
  }
  CHECK(CpuSet::parse("").value().empty());
}

TEST_CASE("a list of CPUs that is none is refused in words") {
  for (const char* text : {"a", "3-1", "0-", "-1", "1,,2", "1048576", "0-99999999999", "1 2"}) {
    const auto parsed = CpuSet::parse(text);
    REQUIRE_FALSE(parsed.ok());
    CHECK(parsed.failure().text.find(text) != std::string::npos);
  }
  std::string bomb = "0-1048575";
  for (int repeat = 0; repeat < 1000; ++repeat) bomb += ",0-1048575";
  CHECK_FALSE(CpuSet::parse(bomb).ok());
}

TEST_CASE("sets of CPUs unite, intersect and contain") {
  const CpuSet low{0, 1, 2};
  const CpuSet high{2, 3};
  CHECK(low.united(high) == CpuSet{0, 1, 2, 3});
  CHECK(low.intersected(high) == CpuSet{2});
  CHECK(low.intersects(high));
  CHECK_FALSE(low.intersects(CpuSet{7}));
  CHECK(low.contains(CpuSet{0, 2}));
  CHECK_FALSE(low.contains(high));
  CHECK(low.contains(CpuSet{}));
}
