// SPDX-License-Identifier: Apache-2.0
#include "trireme/checkpoint/manifest.hpp"

#include "trireme/base/digest.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/json_lists.hpp"

#include "checkpoint/manifest/check.hpp"
#include "checkpoint/manifest/json_reader.hpp"
#include "checkpoint/manifest/names.hpp"

#include <algorithm>
#include <charconv>

namespace trireme::checkpoint {
namespace {

using base::Json;

std::vector<std::uint32_t> checksums_of(JsonReader& reader, const std::string& hex) {
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

device::DType dtype_of(JsonReader& reader, const std::string& text) {
  for (const auto dtype : {device::DType::f32, device::DType::bf16, device::DType::i32}) {
    if (text == device::name(dtype)) return dtype;
  }
  reader.fail("'dtype' is not f32, bf16 or i32");
  return device::DType::f32;
}

std::size_t index_of(JsonReader& reader, const Json& object, const char* key) {
  return static_cast<std::size_t>(reader.number(reader.member(object, key), key));
}

layout::Box box_of(JsonReader& reader, const Json& json) {
  return {reader.shape(reader.member(json, "offset"), "offset"),
          reader.shape(reader.member(json, "length"), "length")};
}

StoredFile file_of(JsonReader& reader, const Json& json, std::int64_t version) {
  StoredFile file;
  file.name = reader.text(reader.member(json, "name"), "name");
  file.bytes = index_of(reader, json, "bytes");
  if (version == 1) {
    file.crc32c = checksums_of(reader, reader.text(reader.member(json, "crc32c"), "crc32c"));
  } else {
    constexpr const char* key = "checksums_sha256";
    file.checksums_sha256 = reader.text(reader.member(json, key), key);
  }
  if (version > 2 && json.contains(digests_key)) {
    file.digests_sha256 = reader.text(json[digests_key], digests_key);
    if (file.digests_sha256.empty()) reader.fail("'digests_sha256' is empty");
  }
  return file;
}

Bucket bucket_of(JsonReader& reader, const Json& json) {
  Bucket bucket;
  bucket.dtype = dtype_of(reader, reader.text(reader.member(json, "dtype"), "dtype"));
  const auto& files = reader.list(reader.member(json, "files"), "files");
  if (files.size() == 3) {
    const auto number = [&](std::size_t at) {
      return static_cast<std::size_t>(reader.number(files[at], "files"));
    };
    bucket.files = {number(0), number(1), number(2)};
  } else {
    reader.fail("'files' of a bucket are not first, stride and count");
  }
  bucket.shard_elements = reader.number(reader.member(json, "shard_elements"), "shard_elements");
  bucket.byte = index_of(reader, json, "byte");
  return bucket;
}

TensorPart part_of(JsonReader& reader, const Json& json, std::size_t dimensions) {
  constexpr const char* what = "parts";
  const auto& numbers = reader.list(json, what);
  if (numbers.size() != 2 + 2 * dimensions) {
    reader.fail("a part is not its bucket, its begin, and offset and length in each dimension");
    return {};
  }
  const auto number = [&](std::size_t at) { return reader.number(numbers[at], what); };
  TensorPart part{{}, static_cast<std::size_t>(number(0)), number(1)};
  for (std::size_t at = 0; at < dimensions; ++at) {
    part.box.offset.push_back(number(2 + at));
    part.box.length.push_back(number(2 + dimensions + at));
  }
  return part;
}

/// Elements of an unchecked box; 0, which every check refuses, when there are too many.
std::int64_t elements_of_unchecked(const layout::Box& box) {
  std::int64_t count = 1;
  for (const auto length : box.length) {
    if (length < 1 || length > max_elements / count) return 0;
    count *= length;
  }
  return count;
}

/// Version 1 lists each box with its file and byte: a bucket of one shard.
TensorPart part_of_version_1(JsonReader& reader, const Json& json, device::DType dtype,
                             std::vector<Bucket>& buckets) {
  auto box = box_of(reader, json);
  const FileRange file{index_of(reader, json, "file"), 1, 1};
  buckets.push_back({dtype, file, elements_of_unchecked(box), index_of(reader, json, "byte")});
  return {std::move(box), buckets.size() - 1, 0};
}

StoredTensor tensor_of(JsonReader& reader, const Json& json, std::int64_t version,
                       std::vector<Bucket>& buckets) {
  StoredTensor tensor{reader.text(reader.member(json, "name"), "name"),
                      dtype_of(reader, reader.text(reader.member(json, "dtype"), "dtype")),
                      reader.shape(reader.member(json, "shape"), "shape"),
                      {}};
  const char* key = version == 1 ? "boxes" : "parts";
  for (const auto& part : reader.list(reader.member(json, key), key)) {
    tensor.parts.push_back(version == 1 ? part_of_version_1(reader, part, tensor.dtype, buckets)
                                        : part_of(reader, part, tensor.shape.size()));
    if (reader.failure_so_far()) break;
  }
  return tensor;
}

/// Builds a manifest from its lists, element by element, and from the rest.
class Builder {
 public:
  explicit Builder(std::string_view source) : reader_(source) {}

  /// Takes an element of a list, once a version is known that says what is in it.
  bool take(const Json& so_far, const std::string& key, const Json& element) {
    if (reader_.failure_so_far()) return true;
    if (!so_far.contains("format") || so_far["format"] != format_name) return false;
    if (!so_far.contains("version") || !is_known(so_far["version"])) return false;
    const auto version = so_far["version"].get<std::int64_t>();
    auto& [buckets, tensors] = manifest_.contents;
    if (key == "files") {
      manifest_.files.push_back(file_of(reader_, element, version));
    } else if (key == "buckets" && version > 1) {
      buckets.push_back(bucket_of(reader_, element));
    } else if (key == "tensors") {
      tensors.push_back(tensor_of(reader_, element, version, buckets));
    } else {
      return false;
    }
    return true;
  }

  /// The manifest of a whole text, `json` without what was taken.
  base::Result<Manifest> finish(const Json& json) {
    check_format(json);
    for (const char* key : {"files", "buckets", "tensors"}) {
      if (reader_.failure_so_far()) break;
      if (key == std::string_view("buckets") && manifest_.version == 1) continue;
      for (const auto& element : reader_.list(reader_.member(json, key), key)) {
        take(json, key, element);
      }
    }
    if (!reader_.failure_so_far()) add_rest(json);
    if (const auto& failed = reader_.failure_so_far()) return *failed;
    return std::move(manifest_);
  }

 private:
  static bool is_known(const Json& version) {
    return version.is_number_integer() && version >= 1 && version <= Manifest::newest_version;
  }
  void check_format(const Json& json) {
    if (reader_.text(reader_.member(json, "format"), "format") != format_name) {
      reader_.fail(base::format("'format' is not '{}'", format_name));
    }
    manifest_.version = reader_.number(reader_.member(json, "version"), "version");
    if (!is_known(manifest_.version)) {
      reader_.fail(base::format(
          "format version {} (this program reads versions 1 to {}); use the version of Trireme "
          "that wrote it, or a newer one",
          manifest_.version, Manifest::newest_version));
    }
  }
  void add_rest(const Json& json) {
    manifest_.step = reader_.number(reader_.member(json, "step"), "step");
    manifest_.tokens = index_of(reader_, json, "tokens");
    manifest_.tool_version = reader_.text(reader_.member(json, "tool_version"), "tool_version");
    manifest_.block_bytes = index_of(reader_, json, "block_bytes");
    if (manifest_.version > 2 && json.contains("folder")) {
      manifest_.folder = reader_.text(json["folder"], "folder");
      if (manifest_.folder.empty()) reader_.fail("'folder' is empty");
    }
    manifest_.state = reader_.member(json, "state");
  }

  JsonReader reader_;
  Manifest manifest_;
};

base::Status check_digest(std::string_view text, std::string_view source) {
  if (text.size() >= digest_bytes) {
    const auto content = text.substr(0, text.size() - digest_bytes);
    const auto tail =
        base::format("{}{}{}", digest_begin, base::hexadecimal(base::sha256(content)), digest_end);
    if (text.substr(content.size()) == tail) return {};
  }
  return base::checkpoint_failure(base::format(
      "{}: the SHA-256 at its end does not match its content (the manifest is damaged or was "
      "edited, so nothing in this checkpoint can be trusted); use another step",
      source));
}

}  // namespace

bool Manifest::has_digests() const {
  return std::all_of(files.begin(), files.end(),
                     [](const StoredFile& file) { return !file.digests_sha256.empty(); });
}

base::Result<Manifest> parse_manifest(std::string_view text, std::string_view source) {
  if (auto status = check_digest(text, source); !status) return status.failure();
  // Lists of a large run are ten times as large in JSON's form as in the manifest's.
  Builder builder(source);
  const auto json = base::parse_json_lists(
      text, source, base::ExitCode::checkpoint,
      [&builder](const Json& so_far, const std::string& key, const Json& element) {
        return builder.take(so_far, key, element);
      });
  if (!json) return json.failure();
  auto manifest = builder.finish(*json);
  if (!manifest) return manifest.failure();
  if (auto status = check_manifest(*manifest); !status) {
    return base::checkpoint_failure(base::format("{}: {}", source, status.failure().text));
  }
  return manifest;
}

}  // namespace trireme::checkpoint
