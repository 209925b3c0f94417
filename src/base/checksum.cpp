// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/checksum.hpp"

#include <isa-l/crc.h>

#include <algorithm>

namespace trireme::base {

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t previous) {
  // The library counts in int and neither inverts before nor after.
  constexpr std::size_t most = std::size_t{1} << 30;
  std::uint32_t state = ~previous;
  while (!bytes.empty()) {
    const auto part = bytes.first(std::min(bytes.size(), most));
    // The function only reads, in spite of its non-const parameter.
    auto* start = const_cast<unsigned char*>(reinterpret_cast<const unsigned char*>(part.data()));
    state = crc32_iscsi(start, static_cast<int>(part.size()), state);
    bytes = bytes.subspan(part.size());
  }
  return ~state;
}

std::uint32_t crc32(std::span<const std::byte> bytes, std::uint32_t previous) {
  return crc32_gzip_refl(previous, reinterpret_cast<const unsigned char*>(bytes.data()),
                         bytes.size());
}

}  // namespace trireme::base
