// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/digest.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/json_text.hpp"
#include "trireme/checkpoint/manifest.hpp"
#include "trireme/checkpoint/signature.hpp"

#include "checkpoint/manifest/check.hpp"
#include "checkpoint/manifest/names.hpp"

#include <algorithm>

namespace trireme::checkpoint {
namespace {

using base::Json;

Json file_json(const StoredFile& file) {
  Json json{
      {"name", file.name}, {"bytes", file.bytes}, {"checksums_sha256", file.checksums_sha256}};
  if (!file.digests_sha256.empty()) json[digests_key] = file.digests_sha256;
  return json;
}

Json bucket_json(const Bucket& bucket) {
  const auto& [first, stride, count] = bucket.files;
  return {{"dtype", device::name(bucket.dtype)},
          {"files", {first, stride, count}},
          {"shard_elements", bucket.shard_elements},
          {"byte", bucket.byte}};
}

/// Numbers alone, because a large run has tens of thousands of parts.
Json part_json(const TensorPart& part) {
  Json numbers{part.bucket, part.begin};
  for (const auto* shape : {&part.box.offset, &part.box.length}) {
    for (const auto number : *shape) numbers.push_back(number);
  }
  return numbers;
}

Json tensor_json(const StoredTensor& tensor) {
  Json parts = Json::array();
  for (const auto& part : tensor.parts) parts.push_back(part_json(part));
  return {{"name", tensor.name},
          {"dtype", device::name(tensor.dtype)},
          {"shape", tensor.shape},
          {"parts", std::move(parts)}};
}

/// The oldest version that says all of a manifest.
std::int64_t version_of(const Manifest& manifest) {
  const auto has_digests = [](const StoredFile& file) { return !file.digests_sha256.empty(); };
  return manifest.folder.empty() &&
                 std::none_of(manifest.files.begin(), manifest.files.end(), has_digests)
             ? 2
             : 3;
}

/// JSON list with one element a line, so that people can read and compare manifests.
template <typename List, typename ToJson>
std::string lines(const List& list, ToJson to_json) {
  std::string text;
  for (const auto& each : list) {
    text += text.empty() ? "\n" : ",\n";
    text += base::json_text(to_json(each));
  }
  return text;
}

}  // namespace

std::string manifest_text(const Manifest& manifest, std::string_view key) {
  auto text = base::format(
      "{{\"format\":\"{}\",\n\"version\":{},\n\"step\":{},\n\"tokens\":{},\n"
      "\"tool_version\":{},\n\"block_bytes\":{},\n{}\"state\":{},\n\"files\":[{}],\n"
      "\"buckets\":[{}],\n\"tensors\":[{}]",
      format_name, version_of(manifest), manifest.step, manifest.tokens,
      base::json_text(Json(manifest.tool_version)), manifest.block_bytes,
      manifest.folder.empty() ? "" : base::format("\"folder\":\"{}\",\n", manifest.folder),
      base::json_text(manifest.state), lines(manifest.files, file_json),
      lines(manifest.contents.buckets, bucket_json), lines(manifest.contents.tensors, tensor_json));
  if (!key.empty()) text += signature_member(text, key);
  const auto digest = base::hexadecimal(base::sha256(text));
  text.append(digest_begin).append(digest).append(digest_end);
  return text;
}

}  // namespace trireme::checkpoint
