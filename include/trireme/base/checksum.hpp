// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

/// Checksums, by ISA-L: against damage, not against attacks (digest.hpp).
namespace trireme::base {

/// CRC-32C (Castagnoli, RFC 3720 appendix B.4), from zero or continued.
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t previous = 0);
/// CRC-32 (IEEE 802.3), likewise.
std::uint32_t crc32(std::span<const std::byte> bytes, std::uint32_t previous = 0);

}  // namespace trireme::base
