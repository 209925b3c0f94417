// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/json.hpp"
#include "trireme/base/json_text.hpp"
#include "trireme/base/path.hpp"
#include "trireme/base/random_id.hpp"
#include "trireme/checkpoint/file_system.hpp"
#include "trireme/checkpoint/output_file.hpp"
#include "trireme/huggingface/safetensors.hpp"

#include <algorithm>
#include <cerrno>
#include <set>

namespace trireme::huggingface {
namespace {

namespace fs = std::filesystem;
using base::Json;
using Outputs = std::vector<const SafetensorsOutput*>;

std::uint64_t bytes_of(const SafetensorsOutput& tensor) {
  return static_cast<std::uint64_t>(layout::element_count(tensor.shape)) *
         device::size_of(tensor.dtype);
}

const char* type_text(device::DType dtype) {
  switch (dtype) {
    case device::DType::f32:
      return "F32";
    case device::DType::bf16:
      return "BF16";
    case device::DType::i32:
      return "I32";
    case device::DType::e4m3:
      break;
  }
  return "?";
}

void check(const std::vector<SafetensorsOutput>& tensors) {
  std::set<std::string_view> names;
  for (const auto& tensor : tensors) {
    TRIREME_EXPECT(names.insert(tensor.name).second && tensor.name != "__metadata__",
                   "each tensor has a name of its own: " + tensor.name);
  }
}

/// The order of Hugging Face's own library: wide types first, so that every element is aligned.
void sort_as_reference(Outputs& tensors) {
  std::sort(tensors.begin(), tensors.end(), [](const auto* a, const auto* b) {
    const auto key = [](const SafetensorsOutput* each) {
      return std::tuple(-static_cast<int>(device::size_of(each->dtype)),
                        std::string_view(each->name));
    };
    return key(a) < key(b);
  });
}

std::string header_of(const Outputs& tensors, const SafetensorsWriteOptions& options) {
  Json json = Json::object();
  if (!options.metadata.empty()) json["__metadata__"] = options.metadata;
  std::uint64_t offset = 0;
  for (const auto* tensor : tensors) {
    const auto end = offset + bytes_of(*tensor);
    json[tensor->name] = {{"dtype", type_text(tensor->dtype)},
                          {"shape", tensor->shape},
                          {"data_offsets", {offset, end}}};
    offset = end;
  }
  auto text = base::json_text(json);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const std::uint64_t size = text.size();
  return std::string(reinterpret_cast<const char*>(&size), sizeof size) + text;
}

/// Writes under another name, so that a reader never meets half a file.
void write_file(const fs::path& path, Outputs tensors, const SafetensorsWriteOptions& options) {
  auto& files = checkpoint::FileSystem::system();
  sort_as_reference(tensors);
  const auto header = header_of(tensors, options);
  std::uint64_t bytes = header.size();
  for (const auto* tensor : tensors) bytes += bytes_of(*tensor);
  auto temporary = path;
  temporary += ".tmp-" + base::random_id();
  try {
    checkpoint::OutputFile file(files, temporary);
    file.allocate(bytes);
    file.write(std::as_bytes(std::span(header.data(), header.size())), 0);
    std::uint64_t at = header.size();
    std::vector<std::byte> buffer;
    for (const auto* tensor : tensors) {
      const auto size = device::size_of(tensor->dtype);
      const auto elements = layout::element_count(tensor->shape);
      const auto most =
          std::max<std::int64_t>(1, static_cast<std::int64_t>(options.piece_bytes / size));
      for (std::int64_t begin = 0; begin < elements; begin += most) {
        const auto end = std::min(begin + most, elements);
        buffer.resize(static_cast<std::size_t>(end - begin) * size);
        tensor->fill(begin, end, {buffer.data(), tensor->dtype, {end - begin}});
        file.write(buffer, at);
        at += buffer.size();
      }
    }
    file.finish();
    if (files.rename(temporary, path) != 0)
      checkpoint::throw_storage_error("rename", temporary, errno);
  } catch (...) {
    std::error_code ignored;
    fs::remove(temporary, ignored);
    throw;
  }
  checkpoint::sync_folder(files, base::absolute(path).parent_path());
}

std::vector<Outputs> cut_into_shards(const std::vector<SafetensorsOutput>& tensors,
                                     std::uint64_t max_shard_bytes) {
  std::vector<Outputs> shards(1);
  std::uint64_t held = 0;
  for (const auto& tensor : tensors) {
    if (!shards.back().empty() && held + bytes_of(tensor) > max_shard_bytes) {
      shards.emplace_back();
      held = 0;
    }
    shards.back().push_back(&tensor);
    held += bytes_of(tensor);
  }
  return shards;
}

void refuse_older_weights(const fs::path& folder) {
  for (const auto& entry : fs::directory_iterator(folder)) {
    const auto name = entry.path().filename().string();
    if (name.ends_with(".safetensors") || name == safetensors_index) {
      throw base::Error(base::ExitCode::checkpoint,
                        base::format("'{}' holds weights already ({}; two models would mix); "
                                     "choose an empty folder",
                                     folder.string(), name));
    }
  }
}

}  // namespace

void write_safetensors(const fs::path& folder, const std::vector<SafetensorsOutput>& tensors,
                       const SafetensorsWriteOptions& options) {
  check(tensors);
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) checkpoint::throw_storage_error("make folder", folder, error.value());
  refuse_older_weights(folder);
  const auto shards = cut_into_shards(tensors, options.max_shard_bytes);
  if (shards.size() == 1) {
    write_file(folder / single_safetensors, shards[0], options);
    return;
  }
  std::uint64_t total_bytes = 0;
  std::map<std::string, std::string> files;
  for (std::size_t index = 0; index < shards.size(); ++index) {
    const auto name = base::format("model-{:05}-of-{:05}.safetensors", index + 1, shards.size());
    write_file(folder / name, shards[index], options);
    for (const auto* tensor : shards[index]) {
      files[tensor->name] = name;
      total_bytes += bytes_of(*tensor);
    }
  }
  const Json index{{"metadata", {{"total_size", total_bytes}}}, {"weight_map", files}};
  base::write_file_durably(folder / safetensors_index, base::json_text(index, 2) + "\n");
}

void write_safetensors_file(const fs::path& file, const std::vector<SafetensorsOutput>& tensors,
                            const SafetensorsWriteOptions& options) {
  check(tensors);
  Outputs all;
  for (const auto& tensor : tensors) all.push_back(&tensor);
  write_file(file, std::move(all), options);
}

}  // namespace trireme::huggingface
