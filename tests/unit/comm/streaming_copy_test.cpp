// SPDX-License-Identifier: Apache-2.0
#include "comm/shm/streaming_copy.hpp"

#include <catch2/catch.hpp>

#include <vector>

TEST_CASE("a streamed copy writes every byte of its place and none beside it") {
  constexpr std::size_t margin = 80;
  constexpr std::byte untouched{0xA5};
  using trireme::comm::Storing;
  for (const std::size_t count : {0U, 1U, 4095U, 4096U, 4097U, 5000U, 65536U + 300U}) {
    for (std::size_t shift = 0; shift < 70; shift += 3) {
      std::vector<std::byte> from(count + 7);
      for (std::size_t i = 0; i < from.size(); ++i) from[i] = std::byte(i * 7 % 251);
      std::vector<std::byte> to(count + 2 * margin, untouched);
      const auto how = shift % 2 == 0 ? Storing::streaming : Storing::ordinary;
      trireme::comm::store_bytes(how, to.data() + shift, from.data() + 7, count);
      for (std::size_t i = 0; i < to.size(); ++i) {
        const bool inside = i >= shift && i < shift + count;
        if (to[i] != (inside ? from[i - shift + 7] : untouched))
          FAIL("byte " << i << " of " << count);
      }
    }
  }
}
