// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/checksum.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"

#include <fcntl.h>
#include <isa-l/crc.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>

namespace trireme::checkpoint {

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

std::vector<std::uint32_t> block_checksums(const std::filesystem::path& path, std::uint64_t bytes,
                                           std::uint64_t block_bytes) {
  const auto file =
      base::value_or_throw(base::open_file(path, O_RDONLY, 0, base::ExitCode::checkpoint));
  std::vector<std::uint32_t> checksums;
  std::vector<std::byte> buffer;
  for (std::uint64_t at = 0; at < bytes; at += block_bytes) {
    buffer.resize(std::min(block_bytes, bytes - at));
    base::read_at(file, buffer, at, path);
    checksums.push_back(crc32c(buffer));
  }
  return checksums;
}

std::string sha256_hex(std::string_view bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int length = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), digest.data(), &length, EVP_sha256(), nullptr) != 1) {
    throw base::Error(base::ExitCode::internal, "OpenSSL cannot compute SHA-256");
  }
  std::string text;
  for (unsigned int at = 0; at < length; ++at) text += base::format("{:02x}", digest[at]);
  return text;
}

}  // namespace trireme::checkpoint
