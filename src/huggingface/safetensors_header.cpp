// SPDX-License-Identifier: Apache-2.0
#include "huggingface/safetensors_header.hpp"

#include "trireme/base/format.hpp"
#include "trireme/base/json.hpp"

#include <algorithm>
#include <array>

namespace trireme::huggingface {
namespace {

using base::Json;

constexpr std::size_t max_dimensions_read = 16;

struct TypeSize {
  std::string_view text;
  std::uint64_t bits;
};
/// All types of the format, as of version 0.8 of its own library.
constexpr std::array<TypeSize, 22> type_sizes{
    {{"F64", 64},        {"I64", 64},    {"U64", 64},    {"C64", 64},    {"F32", 32},
     {"I32", 32},        {"U32", 32},    {"F16", 16},    {"BF16", 16},   {"I16", 16},
     {"U16", 16},        {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8},
     {"F8_E5M2FNUZ", 8}, {"I8", 8},      {"U8", 8},      {"BOOL", 8},    {"F6_E2M3", 6},
     {"F6_E3M2", 6},     {"F4", 4}}};

SafetensorsType type_of(std::string_view text) {
  if (text == "F32") return SafetensorsType::f32;
  if (text == "F16") return SafetensorsType::f16;
  if (text == "BF16") return SafetensorsType::bf16;
  return SafetensorsType::other;
}

base::Failure failure(std::string_view source, const std::string& text) {
  return {base::ExitCode::checkpoint,
          base::format("'{}' is not a sound safetensors file: {}; fetch it again", source, text)};
}

bool is_size(const Json& json) {
  return json.is_number_unsigned() && json.get<std::uint64_t>() <= INT64_MAX;
}

bool is_size_list(const Json& json, std::size_t most) {
  return json.is_array() && json.size() <= most && std::all_of(json.begin(), json.end(), is_size);
}

/// Elements of the shape times bits of one, in whole bytes; nothing when that overflows or leaves
/// bits over.
std::optional<std::uint64_t> byte_count(const layout::Shape& shape, std::uint64_t element_bits) {
  std::uint64_t bits = element_bits;
  for (const auto length : shape) {
    if (__builtin_mul_overflow(bits, static_cast<std::uint64_t>(length), &bits)) return {};
  }
  if (bits % 8 != 0) return {};
  return bits / 8;
}

base::Result<SafetensorsPlace> place_of(const std::string& name, const Json& json,
                                        std::uint64_t data_bytes, std::string_view source) {
  const auto wrong = [&](const std::string& text) {
    return failure(source, base::format("tensor '{}' {}", name, text));
  };
  if (!json.is_object() || !json.contains("dtype") || !json["dtype"].is_string() ||
      !json.contains("shape") || !is_size_list(json["shape"], max_dimensions_read) ||
      !json.contains("data_offsets") || !is_size_list(json["data_offsets"], 2) ||
      json["data_offsets"].size() != 2) {
    return wrong("lacks a dtype, a shape or two data_offsets");
  }
  SafetensorsPlace place{{name, SafetensorsType::other, json["dtype"].get<std::string>(),
                          json["shape"].get<layout::Shape>()},
                         json["data_offsets"][0].get<std::uint64_t>(),
                         json["data_offsets"][1].get<std::uint64_t>()};
  place.entry.dtype = type_of(place.entry.dtype_text);
  const auto element_bits = safetensors_type_bits(place.entry.dtype_text);
  if (element_bits == 0) {
    return base::Failure{
        base::ExitCode::checkpoint,
        base::format("'{}': tensor '{}' has the unknown type '{}' (the format's own library knows "
                     "none of this name, so its size cannot be told); write the tensor again as "
                     "F32, F16 or BF16, or leave it out of the file",
                     source, name, place.entry.dtype_text)};
  }
  if (place.begin > place.end || place.end > data_bytes) {
    return wrong(base::format("lies in bytes {} to {} of {}", place.begin, place.end, data_bytes));
  }
  if (byte_count(place.entry.shape, element_bits) != place.end - place.begin) {
    return wrong(base::format("has {} bytes, which is not what shape [{}] of {} needs",
                              place.end - place.begin, base::join(place.entry.shape, ", "),
                              place.entry.dtype_text));
  }
  return place;
}

/// Gapless cover, as in the reference implementation: tensors follow one another and fill the file.
base::Status check_cover(std::vector<SafetensorsPlace>& places, std::uint64_t data_bytes,
                         std::string_view source) {
  std::sort(places.begin(), places.end(), [](const auto& a, const auto& b) {
    return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
  });
  std::uint64_t next = 0;
  for (const auto& place : places) {
    if (place.begin != next) {
      return failure(source, base::format("tensor '{}' begins at byte {} where {} is expected ({})",
                                          place.entry.name, place.begin, next,
                                          place.begin < next ? "overlap" : "gap"));
    }
    next = place.end;
  }
  if (next == data_bytes) return {};
  return failure(source, base::format("its tensors end at byte {} of {}", next, data_bytes));
}

}  // namespace

std::uint64_t safetensors_type_bits(std::string_view dtype_text) {
  for (const auto& [text, bits] : type_sizes) {
    if (text == dtype_text) return bits;
  }
  return 0;
}

base::Result<SafetensorsHeader> parse_safetensors_header(std::string_view json,
                                                         std::uint64_t data_bytes,
                                                         std::string_view source) {
  const auto parsed = base::parse_json(json, source, base::ExitCode::checkpoint);
  if (!parsed) return parsed.failure();
  if (!parsed->is_object()) return failure(source, "its header is not a JSON object");
  SafetensorsHeader header;
  for (const auto& [name, value] : parsed->items()) {
    if (name == "__metadata__") {
      if (!value.is_object()) return failure(source, "__metadata__ is not an object");
      for (const auto& [key, text] : value.items()) {
        if (!text.is_string()) return failure(source, "__metadata__ holds more than texts");
        header.metadata[key] = text.get<std::string>();
      }
      continue;
    }
    auto place = place_of(name, value, data_bytes, source);
    if (!place) return place.failure();
    header.places.push_back(std::move(*place));
  }
  if (auto status = check_cover(header.places, data_bytes, source); !status) {
    return status.failure();
  }
  return header;
}

}  // namespace trireme::huggingface
