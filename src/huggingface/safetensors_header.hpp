// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"
#include "trireme/huggingface/safetensors.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace trireme::huggingface {

/// Limit of the reference implementation.
constexpr std::uint64_t max_safetensors_header_bytes = 100'000'000;

/// Tensor and the range of its elements in its file's data.
struct SafetensorsPlace {
  SafetensorsEntry entry;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

struct SafetensorsHeader {
  std::vector<SafetensorsPlace> places;
  std::map<std::string, std::string> metadata;
};

/// Bits of an element; 0 when the format has no such type.
std::uint64_t safetensors_type_bits(std::string_view dtype_text);

/// Checks the header of a file that has `data_bytes` after it.
base::Result<SafetensorsHeader> parse_safetensors_header(std::string_view json,
                                                         std::uint64_t data_bytes,
                                                         std::string_view source);

}  // namespace trireme::huggingface
