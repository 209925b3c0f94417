// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace trireme::checkpoint {

/// CRC32C (Castagnoli, RFC 3720 appendix B.4), from zero or continued.
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t previous = 0);

/// SHA-256 (FIPS 180-4) as 64 lower-case hexadecimal digits.
std::string sha256_hex(std::string_view bytes);

}  // namespace trireme::checkpoint
