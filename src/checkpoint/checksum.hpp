// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trireme::checkpoint {

/// CRC32C (Castagnoli, RFC 3720 appendix B.4), from zero or continued.
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t previous = 0);

/// CRC32C of every block of an existing file of this length. Throws Error (checkpoint).
std::vector<std::uint32_t> block_checksums(const std::filesystem::path& path, std::uint64_t bytes,
                                           std::uint64_t block_bytes);

/// SHA-256 (FIPS 180-4) as 64 lower-case hexadecimal digits.
std::string sha256_hex(std::string_view bytes);

}  // namespace trireme::checkpoint
