// SPDX-License-Identifier: Apache-2.0
#include "trireme/checkpoint/manifest.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"

#include "checkpoint/checksum.hpp"
#include "checkpoint/manifest/check.hpp"
#include "checkpoint/manifest/manifest_text.hpp"

#include <algorithm>
#include <charconv>

namespace trireme::checkpoint {
namespace {

using base::Json;

constexpr const char* format_name = "trireme-checkpoint";
constexpr std::string_view digest_begin = ",\n\"sha256\":\"";
constexpr std::string_view digest_end = "\"}\n";
constexpr std::size_t digest_digits = 64;
constexpr std::size_t tail_bytes = digest_begin.size() + digest_digits + digest_end.size();

base::Failure failure(std::string text) {
  return {base::ExitCode::checkpoint, std::move(text)};
}

std::string hex_of(const std::vector<std::uint32_t>& checksums) {
  std::string text;
  text.reserve(checksums.size() * 8);
  for (const auto checksum : checksums) text += base::format("{:08x}", checksum);
  return text;
}

Json file_json(const StoredFile& file) {
  return {{"name", file.name}, {"bytes", file.bytes}, {"crc32c", hex_of(file.crc32c)}};
}

Json box_json(const StoredBox& stored) {
  return {{"offset", stored.box.offset},
          {"length", stored.box.length},
          {"file", stored.file},
          {"byte", stored.byte}};
}

Json tensor_json(const StoredTensor& tensor) {
  Json boxes = Json::array();
  for (const auto& stored : tensor.boxes) boxes.push_back(box_json(stored));
  return {{"name", tensor.name},
          {"dtype", device::name(tensor.dtype)},
          {"shape", tensor.shape},
          {"boxes", std::move(boxes)}};
}

/// JSON list with one element a line, so that people can read and compare manifests.
template <typename List, typename ToJson>
std::string lines(const List& list, ToJson to_json) {
  std::string text;
  for (const auto& each : list) {
    text += text.empty() ? "\n" : ",\n";
    text += to_json(each).dump();
  }
  return text;
}

/// Members of untrusted JSON, each checked for its type; the first failure is kept.
class Reader {
 public:
  explicit Reader(std::string_view source) : source_(source) {}

  const Json& member(const Json& object, const char* key) {
    static const Json nothing;
    if (!object.is_object() || !object.contains(key)) {
      fail(base::format("member '{}' is missing", key));
      return nothing;
    }
    return object[key];
  }
  std::int64_t number(const Json& json, const char* what) {
    // Unsigned numbers above the signed range are refused with the negative ones.
    if (json.is_number_integer() &&
        (!json.is_number_unsigned() || json.get<std::uint64_t>() <= INT64_MAX)) {
      const auto value = json.get<std::int64_t>();
      if (value >= 0) return value;
    }
    fail(base::format("'{}' is not a whole number from 0 to 2^63 - 1", what));
    return 0;
  }
  std::string text(const Json& json, const char* what) {
    if (json.is_string()) return json.get<std::string>();
    fail(base::format("'{}' is not a text", what));
    return {};
  }
  layout::Shape shape(const Json& json, const char* what) {
    layout::Shape numbers;
    if (!json.is_array() || json.empty() || json.size() > max_dimensions) {
      fail(base::format("'{}' is not a list of 1 to {} numbers", what, max_dimensions));
      return numbers;
    }
    for (const auto& each : json) numbers.push_back(number(each, what));
    return numbers;
  }
  const Json& list(const Json& json, const char* what) {
    static const Json nothing = Json::array();
    if (json.is_array()) return json;
    fail(base::format("'{}' is not a list", what));
    return nothing;
  }
  void fail(std::string text) {
    if (!failure_) failure_ = failure(base::format("{}: {}", source_, text));
  }
  const std::optional<base::Failure>& failure_so_far() const { return failure_; }

 private:
  std::string source_;
  std::optional<base::Failure> failure_;
};

std::vector<std::uint32_t> checksums_of(Reader& reader, const std::string& hex) {
  std::vector<std::uint32_t> checksums;
  if (hex.size() % 8 != 0) reader.fail("'crc32c' is not 8 hexadecimal digits a block");
  for (std::size_t at = 0; at + 8 <= hex.size(); at += 8) {
    std::uint32_t value = 0;
    const auto result = std::from_chars(&hex[at], &hex[at] + 8, value, 16);
    if (result.ec != std::errc{} || result.ptr != &hex[at] + 8) {
      reader.fail("'crc32c' is not 8 hexadecimal digits a block");
      return checksums;
    }
    checksums.push_back(value);
  }
  return checksums;
}

StoredFile file_of(Reader& reader, const Json& json) {
  return {reader.text(reader.member(json, "name"), "name"),
          static_cast<std::uint64_t>(reader.number(reader.member(json, "bytes"), "bytes")),
          checksums_of(reader, reader.text(reader.member(json, "crc32c"), "crc32c"))};
}

device::DType dtype_of(Reader& reader, const std::string& text) {
  for (const auto dtype : {device::DType::f32, device::DType::bf16, device::DType::i32}) {
    if (text == device::name(dtype)) return dtype;
  }
  reader.fail("'dtype' is not f32, bf16 or i32");
  return device::DType::f32;
}

StoredTensor tensor_of(Reader& reader, const Json& json) {
  StoredTensor tensor{reader.text(reader.member(json, "name"), "name"),
                      dtype_of(reader, reader.text(reader.member(json, "dtype"), "dtype")),
                      reader.shape(reader.member(json, "shape"), "shape"),
                      {}};
  for (const auto& box : reader.list(reader.member(json, "boxes"), "boxes")) {
    tensor.boxes.push_back(
        {{reader.shape(reader.member(box, "offset"), "offset"),
          reader.shape(reader.member(box, "length"), "length")},
         static_cast<std::size_t>(reader.number(reader.member(box, "file"), "file")),
         static_cast<std::uint64_t>(reader.number(reader.member(box, "byte"), "byte"))});
    if (reader.failure_so_far()) break;
  }
  return tensor;
}

base::Status check_digest(std::string_view text, std::string_view source) {
  if (text.size() >= tail_bytes) {
    const auto content = text.substr(0, text.size() - tail_bytes);
    const auto tail = base::format("{}{}{}", digest_begin, sha256_hex(content), digest_end);
    if (text.substr(content.size()) == tail) return {};
  }
  return failure(base::format(
      "{}: the SHA-256 at its end does not match its content (the manifest is damaged or was "
      "edited, so nothing in this checkpoint can be trusted); use another step",
      source));
}

}  // namespace

const StoredTensor* Manifest::find(std::string_view name) const {
  const auto found = std::lower_bound(
      tensors.begin(), tensors.end(), name,
      [](const StoredTensor& each, std::string_view key) { return each.name < key; });
  return found != tensors.end() && found->name == name ? &*found : nullptr;
}

std::uint64_t Manifest::payload_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& tensor : tensors) {
    bytes += static_cast<std::uint64_t>(layout::element_count(tensor.shape)) *
             device::size_of(tensor.dtype);
  }
  return bytes;
}

std::string manifest_text(const Manifest& manifest) {
  auto text = base::format(
      "{{\"format\":\"{}\",\n\"version\":{},\n\"step\":{},\n\"tokens\":{},\n"
      "\"tool_version\":{},\n\"block_bytes\":{},\n\"state\":{},\n\"files\":[{}],\n"
      "\"tensors\":[{}]",
      format_name, Manifest::format_version, manifest.step, manifest.tokens,
      Json(manifest.tool_version).dump(), manifest.block_bytes, manifest.state.dump(),
      lines(manifest.files, file_json), lines(manifest.tensors, tensor_json));
  const auto digest = sha256_hex(text);
  text.append(digest_begin).append(digest).append(digest_end);
  return text;
}

base::Result<Manifest> parse_manifest(std::string_view text, std::string_view source) {
  if (auto status = check_digest(text, source); !status) return status.failure();
  auto json = base::parse_json(text, source, base::ExitCode::checkpoint);
  if (!json) return json.failure();
  Reader reader(source);
  if (reader.text(reader.member(*json, "format"), "format") != format_name) {
    reader.fail(base::format("'format' is not '{}'", format_name));
  }
  const auto version = reader.number(reader.member(*json, "version"), "version");
  if (version != Manifest::format_version) {
    reader.fail(
        base::format("format version {} (this program reads version {}); use the version "
                     "of Trireme that wrote it, or a newer one",
                     version, Manifest::format_version));
  }
  if (const auto& failed = reader.failure_so_far()) return *failed;
  Manifest manifest;
  manifest.step = reader.number(reader.member(*json, "step"), "step");
  manifest.tokens =
      static_cast<std::uint64_t>(reader.number(reader.member(*json, "tokens"), "tokens"));
  manifest.tool_version = reader.text(reader.member(*json, "tool_version"), "tool_version");
  manifest.block_bytes =
      static_cast<std::uint64_t>(reader.number(reader.member(*json, "block_bytes"), "block_bytes"));
  manifest.state = reader.member(*json, "state");
  for (const auto& file : reader.list(reader.member(*json, "files"), "files")) {
    manifest.files.push_back(file_of(reader, file));
    if (const auto& failed = reader.failure_so_far()) return *failed;
  }
  for (const auto& tensor : reader.list(reader.member(*json, "tensors"), "tensors")) {
    manifest.tensors.push_back(tensor_of(reader, tensor));
    if (const auto& failed = reader.failure_so_far()) return *failed;
  }
  if (const auto& failed = reader.failure_so_far()) return *failed;
  if (auto status = check_manifest(manifest); !status) {
    return failure(base::format("{}: {}", source, status.failure().text));
  }
  return manifest;
}

std::string committable_text(const Manifest& manifest) {
  if (const auto status = check_manifest(manifest); !status) {
    throw base::Error(base::ExitCode::internal, status.failure().text);
  }
  auto text = manifest_text(manifest);
  // A step that cannot be loaded must not replace one that can.
  if (text.size() > Manifest::max_text_bytes) {
    throw base::Error(base::ExitCode::checkpoint,
                      manifest_too_long(base::format("is {}", base::bytes_text(text.size()))));
  }
  return text;
}

std::size_t box_text_bytes(const StoredBox& stored) {
  return box_json(stored).dump().size() + 1;
}

std::string manifest_too_long(std::string_view is) {
  return base::format(
      "manifest.json {}, and readers take {} at most (no run could load this checkpoint; it lists "
      "every box of every rank); use parallel.zero_level = 0, or fewer data-parallel ranks",
      is, base::bytes_text(Manifest::max_text_bytes));
}

}  // namespace trireme::checkpoint
