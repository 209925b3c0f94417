// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/counted.hpp"
#include "trireme/base/format.hpp"
#include "trireme/checkpoint/folders.hpp"

#include <algorithm>
#include <map>

namespace trireme::checkpoint {
namespace {

std::uint64_t bytes_of(const StoredTensor& tensor) {
  return static_cast<std::uint64_t>(layout::element_count(tensor.shape)) *
         device::size_of(tensor.dtype);
}

/// "adamw.first_moment" of "adamw.first_moment/layers.0.mlp.up.weight".
std::string group_of(const std::string& name) {
  const auto slash = name.find('/');
  return slash == std::string::npos ? "parameters" : name.substr(0, slash);
}

struct Group {
  std::size_t tensors = 0;
  std::int64_t elements = 0;
  std::uint64_t bytes = 0;
};

std::map<std::string, Group> groups_of(const Manifest& manifest) {
  std::map<std::string, Group> groups;
  for (const auto& tensor : manifest.contents.tensors) {
    auto& group = groups[group_of(tensor.name)];
    ++group.tensors;
    group.elements += layout::element_count(tensor.shape);
    group.bytes += bytes_of(tensor);
  }
  return groups;
}

}  // namespace

base::Json inspect_json(const Manifest& manifest) {
  base::Json tensors = base::Json::array();
  for (const auto& tensor : manifest.contents.tensors) {
    tensors.push_back({{"name", tensor.name},
                       {"dtype", device::name(tensor.dtype)},
                       {"shape", tensor.shape},
                       {"bytes", bytes_of(tensor)},
                       {"parts", tensor.parts.size()}});
  }
  base::Json files = base::Json::array();
  for (const auto& file : manifest.files) {
    files.push_back({{"name", file.name}, {"bytes", manifest.stored_bytes(file)}});
  }
  return {{"format_version", manifest.version},
          {"step", manifest.step},
          {"tokens", manifest.tokens},
          {"tool_version", manifest.tool_version},
          {"payload_bytes", manifest.contents.payload_bytes()},
          {"state", manifest.state},
          {"files", std::move(files)},
          {"tensors", std::move(tensors)}};
}

std::string inspect_text(const Manifest& manifest) {
  auto text =
      base::format("step {}, {} tokens, written by {}\n{} of tensors in {}\n\n", manifest.step,
                   manifest.tokens, manifest.tool_version.empty() ? "?" : manifest.tool_version,
                   base::bytes_text(manifest.contents.payload_bytes()),
                   base::counted(std::ssize(manifest.files), "file"));
  std::size_t group_width = 12;
  for (const auto& [name, group] : groups_of(manifest)) {
    group_width = std::max(group_width, name.size());
  }
  text += base::format("{:<{}} {:>8} {:>16} {:>12}\n", "group", group_width, "tensors", "elements",
                       "size");
  for (const auto& [name, group] : groups_of(manifest)) {
    text += base::format("{:<{}} {:>8} {:>16} {:>12}\n", name, group_width, group.tensors,
                         group.elements, base::bytes_text(group.bytes));
  }
  std::size_t width = 6;
  for (const auto& tensor : manifest.contents.tensors) width = std::max(width, tensor.name.size());
  text += base::format("\n{:<{}} {:<6} {:<24} {:>6}\n", "tensor", width, "type", "shape", "parts");
  for (const auto& tensor : manifest.contents.tensors) {
    text +=
        base::format("{:<{}} {:<6} {:<24} {:>6}\n", tensor.name, width, device::name(tensor.dtype),
                     base::format("[{}]", base::join(tensor.shape, ", ")), tensor.parts.size());
  }
  return text;
}

}  // namespace trireme::checkpoint
