// SPDX-License-Identifier: Apache-2.0
#include "comm/shm/store_choice.hpp"

#include <catch2/catch.hpp>

using trireme::comm::faster_stores;
using trireme::comm::StoreChoice;
using trireme::comm::StoreSeconds;
using trireme::comm::Storing;

TEST_CASE("either size takes the stores that were faster for arrays of its own") {
  const auto chosen = [](StoreSeconds small, StoreSeconds large) {
    return faster_stores(
        [&](std::size_t bytes) { return bytes < StoreChoice::large_bytes ? small : large; });
  };
  // By Storing: ordinary, streaming.
  const StoreSeconds first{1, 2};
  const StoreSeconds second{2, 1};
  for (const auto& small : {first, second}) {
    for (const auto& large : {first, second}) {
      const auto choice = chosen(small, large);
      CHECK(choice.small == (small == first ? Storing::ordinary : Storing::streaming));
      CHECK(choice.large == (large == first ? Storing::ordinary : Storing::streaming));
    }
  }
  CHECK(chosen({1, 1}, {1, 1}).large == Storing::ordinary);
}

TEST_CASE("data take the stores of their size") {
  const StoreChoice choice{Storing::streaming, Storing::ordinary};
  CHECK(choice.of(0) == Storing::streaming);
  CHECK(choice.of(StoreChoice::large_bytes - 1) == Storing::streaming);
  CHECK(choice.of(StoreChoice::large_bytes) == Storing::ordinary);
}
