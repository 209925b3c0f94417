// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace trireme::data {

/// Layout of a Megatron .idx: magic, u64 version, u8 token type, u64 sequences, u64 document
/// indices, then int32 lengths [sequences], int64 byte pointers [sequences] and int64 document
/// indices: the first sequence of each document, and the number of sequences at the end.
struct MegatronIndex {
  static constexpr std::array<char, 9> magic{'M', 'M', 'I', 'D', 'I', 'D', 'X', '\0', '\0'};
  static constexpr std::uint64_t version = 1;
  static constexpr std::uint8_t code_int32 = 4;
  static constexpr std::uint8_t code_uint16 = 8;
  static constexpr std::size_t version_offset = 9;
  static constexpr std::size_t type_offset = 17;
  static constexpr std::size_t sequences_offset = 18;
  static constexpr std::size_t documents_offset = 26;
  static constexpr std::size_t header_bytes = 34;
};

}  // namespace trireme::data
