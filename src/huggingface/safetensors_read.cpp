// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/json.hpp"
#include "trireme/base/suggest.hpp"
#include "trireme/checkpoint/box_runs.hpp"
#include "trireme/huggingface/safetensors.hpp"

#include "huggingface/half.hpp"
#include "huggingface/safetensors_header.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <numeric>

namespace trireme::huggingface {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t max_index_bytes = std::size_t{64} << 20;
/// "version ", with which a pointer file of Git LFS begins, as the size of a header.
constexpr std::uint64_t git_lfs_pointer = 0x206E6F6973726576;
/// Number of bytes that are read of a file at once.
constexpr std::uint64_t span_bytes = std::uint64_t{4} << 20;
/// Runs of at least this size are read one by one; smaller ones together with what is between.
constexpr std::uint64_t lone_run_bytes = std::uint64_t{16} << 10;

/// An open safetensors file.
struct Shard {
  fs::path path;
  base::File file;
  std::uint64_t data_begin = 0;
  SafetensorsHeader header;
};

base::Result<Shard> open_shard(const fs::path& path) {
  auto file = base::open_file(path, O_RDONLY | O_NONBLOCK, 0, base::ExitCode::checkpoint);
  if (!file) return file.failure();
  struct stat facts {};
  if (::fstat(file->get(), &facts) != 0) {
    return base::checkpoint_failure(
        base::format("cannot examine '{}': {}", path.string(), std::strerror(errno)));
  }
  if (!S_ISREG(facts.st_mode) || facts.st_size < 8) {
    return base::checkpoint_failure(base::format("'{}' is not a safetensors file", path.string()));
  }
  const auto bytes = static_cast<std::uint64_t>(facts.st_size);
  std::uint64_t header_bytes = 0;
  std::string json;
  try {
    base::read_at(*file, std::as_writable_bytes(std::span(&header_bytes, 1)), 0, path);
    if (header_bytes == git_lfs_pointer) {
      return base::checkpoint_failure(
          base::format("'{}' holds no weights but the pointer that Git LFS leaves for "
                       "them; fetch them with 'git lfs pull'",
                       path.string()));
    }
    if (header_bytes > max_safetensors_header_bytes || header_bytes > bytes - 8) {
      return base::checkpoint_failure(
          base::format("'{}' claims a header of {} bytes (its size is {}; at most {} "
                       "are allowed); fetch it again",
                       path.string(), header_bytes, bytes, max_safetensors_header_bytes));
    }
    json.resize(header_bytes);
    base::read_at(*file, std::as_writable_bytes(std::span(json.data(), json.size())), 8, path);
  } catch (const base::Error& error) {
    return base::checkpoint_failure(error.what());
  }
  auto header = parse_safetensors_header(json, bytes - 8 - header_bytes, path.string());
  if (!header) return header.failure();
  return Shard{path, std::move(*file), 8 + header_bytes, std::move(*header)};
}

/// Tensor to file name, from an index of untrusted origin.
base::Result<std::map<std::string, std::string>> read_index(const fs::path& path) {
  const auto json = base::read_json_file(path, base::ExitCode::checkpoint, max_index_bytes);
  if (!json) return json.failure();
  if (!json->is_object() || !json->contains("weight_map") || !(*json)["weight_map"].is_object()) {
    return base::checkpoint_failure(base::format("'{}' has no object 'weight_map'", path.string()));
  }
  std::map<std::string, std::string> files;
  for (const auto& [name, file] : (*json)["weight_map"].items()) {
    const auto text = file.is_string() ? file.get<std::string>() : std::string{};
    if (text.find('/') != std::string::npos || !text.ends_with(".safetensors")) {
      return base::checkpoint_failure(
          base::format("'{}' names for tensor '{}' no file of its own folder that ends "
                       "in .safetensors",
                       path.string(), name));
    }
    files[name] = text;
  }
  return files;
}

std::byte* destination_at(const device::Tensor& tensor, std::int64_t element) {
  return static_cast<std::byte*>(tensor.raw()) +
         static_cast<std::size_t>(element) * device::size_of(tensor.dtype());
}

float float_at(const std::byte* from, SafetensorsType type) {
  std::uint16_t bits = 0;
  float value = 0;
  switch (type) {
    case SafetensorsType::f32:
      std::memcpy(&value, from, sizeof value);
      return value;
    case SafetensorsType::bf16:
      std::memcpy(&bits, from, sizeof bits);
      return device::to_float(device::Bf16{bits});
    case SafetensorsType::f16:
      std::memcpy(&bits, from, sizeof bits);
      return half_to_float(bits);
    case SafetensorsType::other:
      break;
  }
  return 0;
}

/// `count` elements to the destination, `stride` elements apart.
struct Conversion {
  SafetensorsType from;
  const device::Tensor& destination;
  std::uint64_t element_bytes;

  void operator()(const std::byte* source, std::int64_t held, std::int64_t count,
                  std::int64_t stride) const {
    const bool same = (from == SafetensorsType::f32 && destination.dtype() == device::DType::f32) ||
                      (from == SafetensorsType::bf16 && destination.dtype() == device::DType::bf16);
    if (same && stride == 1) {
      std::memcpy(destination_at(destination, held), source,
                  static_cast<std::size_t>(count) * element_bytes);
      return;
    }
    for (std::int64_t index = 0; index < count; ++index) {
      const float value =
          float_at(source + static_cast<std::uint64_t>(index) * element_bytes, from);
      auto* to = destination_at(destination, held + index * stride);
      if (destination.dtype() == device::DType::bf16) {
        const auto rounded = device::to_bf16(value);
        std::memcpy(to, &rounded, sizeof rounded);
      } else {
        std::memcpy(to, &value, sizeof value);
      }
    }
  }
};

/// Runs of elements that follow one another in the file, ascending there; in the destination
/// they are `stride` elements apart.
struct Runs {
  std::int64_t count;
  std::int64_t length;
  std::int64_t stride;
  std::function<checkpoint::BoxRuns::Run(std::int64_t)> at;
};

Runs runs_as_stored(const layout::Shape& shape, const layout::Box& box,
                    const device::Tensor& destination) {
  const checkpoint::BoxRuns runs(layout::whole(shape), box, destination, box);
  return {runs.count(), runs.length(), 1, [runs](std::int64_t index) { return runs.at(index); }};
}

/// Transposing read: stored [in, out], requested as [out, in]; each stored row becomes a column.
Runs runs_transposed(const layout::Shape& shape, const layout::Box& box,
                     const device::Tensor& destination) {
  const auto stride = destination.rank() == 2 ? destination.stride(0) : box.length[1];
  const auto first = box.offset[1];
  const auto column = box.offset[0];
  const auto width = shape[1];
  return {box.length[1], box.length[0], stride, [=](std::int64_t index) {
            return checkpoint::BoxRuns::Run{(first + index) * width + column, index};
          }};
}

bool inside(const layout::Box& box, const layout::Shape& shape) {
  if (box.offset.size() != shape.size() || box.length.size() != shape.size()) return false;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (box.offset[d] < 0 || box.length[d] < 0 || box.offset[d] > shape[d] ||
        box.length[d] > shape[d] - box.offset[d]) {
      return false;
    }
  }
  return true;
}

}  // namespace

struct SafetensorsFolder::State {
  std::vector<Shard> shards;
  std::vector<SafetensorsEntry> entries;
  struct Place {
    std::size_t shard;
    std::uint64_t begin;
  };
  std::vector<Place> places;  // like entries
  std::map<std::string, std::string> metadata;

  base::Status add_shard(const fs::path& path) {
    auto shard = open_shard(path);
    if (!shard) return shard.failure();
    for (const auto& [key, text] : shard->header.metadata) metadata.emplace(key, text);
    shards.push_back(std::move(*shard));
    return {};
  }
  /// Removes the tensors of the last shard that `wanted` selects.
  template <typename Wanted>
  std::size_t take_tensors(Wanted wanted) {
    std::size_t taken = 0;
    for (const auto& place : shards.back().header.places) {
      if (!wanted(place.entry.name)) continue;
      entries.push_back(place.entry);
      places.push_back({shards.size() - 1, place.begin});
      ++taken;
    }
    return taken;
  }
  base::Status add_indexed(const fs::path& folder);
  void sort();
  /// Throws Error when reading fails.
  void read(const Place& place, const Runs& runs, const Conversion& convert) const;
};

base::Status SafetensorsFolder::State::add_indexed(const fs::path& folder) {
  const auto index = read_index(folder / safetensors_index);
  if (!index) return index.failure();
  std::map<std::string, std::size_t> tensors_of_files;
  for (const auto& [name, file] : *index) ++tensors_of_files[file];
  for (const auto& [file, tensors] : tensors_of_files) {
    if (auto status = add_shard(folder / file); !status) return status;
    const auto taken = take_tensors([&](const std::string& name) {
      const auto found = index->find(name);
      return found != index->end() && found->second == file;
    });
    if (taken != tensors) {
      return base::checkpoint_failure(
          base::format("'{}' has {} of the {} tensors that '{}' says; fetch both again",
                       (folder / file).string(), taken, tensors, safetensors_index));
    }
  }
  return {};
}

void SafetensorsFolder::State::sort() {
  std::vector<std::size_t> order(entries.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return entries[a].name < entries[b].name; });
  std::vector<SafetensorsEntry> sorted_entries;
  std::vector<Place> sorted_places;
  for (const auto index : order) {
    sorted_entries.push_back(std::move(entries[index]));
    sorted_places.push_back(places[index]);
  }
  entries = std::move(sorted_entries);
  places = std::move(sorted_places);
}

void SafetensorsFolder::State::read(const Place& place, const Runs& runs,
                                    const Conversion& convert) const {
  const auto& shard = shards[place.shard];
  const auto origin = shard.data_begin + place.begin;
  const auto size = convert.element_bytes;
  const auto most = static_cast<std::int64_t>(span_bytes / size);
  std::vector<std::byte> buffer;
  const auto fetch = [&](std::int64_t first, std::int64_t count) {
    buffer.resize(static_cast<std::uint64_t>(count) * size);
    base::read_at(shard.file, buffer, origin + static_cast<std::uint64_t>(first) * size,
                  shard.path);
  };
  for (std::int64_t index = 0; index < runs.count;) {
    const auto first = runs.at(index);
    if (static_cast<std::uint64_t>(runs.length) * size >= lone_run_bytes) {
      for (std::int64_t done = 0; done < runs.length; done += most) {
        const auto count = std::min(most, runs.length - done);
        fetch(first.stored + done, count);
        convert(buffer.data(), first.held + done * runs.stride, count, runs.stride);
      }
      ++index;
      continue;
    }
    auto end = index + 1;
    while (end < runs.count && runs.at(end).stored + runs.length - first.stored <= most) ++end;
    fetch(first.stored, runs.at(end - 1).stored + runs.length - first.stored);
    for (; index < end; ++index) {
      const auto run = runs.at(index);
      convert(&buffer[static_cast<std::uint64_t>(run.stored - first.stored) * size], run.held,
              runs.length, runs.stride);
    }
  }
}

SafetensorsFolder::SafetensorsFolder(std::unique_ptr<State> state) : state_(std::move(state)) {}
SafetensorsFolder::SafetensorsFolder(SafetensorsFolder&&) noexcept = default;
SafetensorsFolder& SafetensorsFolder::operator=(SafetensorsFolder&&) noexcept = default;
SafetensorsFolder::~SafetensorsFolder() = default;

base::Result<SafetensorsFolder> SafetensorsFolder::open(const fs::path& path) {
  auto state = std::make_unique<State>();
  std::error_code ignored;
  base::Status status;
  if (fs::is_directory(path, ignored) && !fs::exists(path / single_safetensors, ignored)) {
    if (!fs::exists(path / safetensors_index, ignored)) {
      return base::checkpoint_failure(
          base::format("'{}' holds neither {} nor {}; name a folder with Hugging Face "
                       "weights in safetensors form",
                       path.string(), single_safetensors, safetensors_index));
    }
    status = state->add_indexed(path);
  } else {
    status = state->add_shard(fs::is_directory(path, ignored) ? path / single_safetensors : path);
    if (status) state->take_tensors([](const std::string&) { return true; });
  }
  if (!status) return status.failure();
  state->sort();
  return SafetensorsFolder(std::move(state));
}

const std::vector<SafetensorsEntry>& SafetensorsFolder::tensors() const {
  return state_->entries;
}

const std::map<std::string, std::string>& SafetensorsFolder::metadata() const {
  return state_->metadata;
}

const SafetensorsEntry* SafetensorsFolder::find(std::string_view name) const {
  const auto found = std::lower_bound(
      state_->entries.begin(), state_->entries.end(), name,
      [](const SafetensorsEntry& each, std::string_view key) { return each.name < key; });
  return found != state_->entries.end() && found->name == name ? &*found : nullptr;
}

base::Status SafetensorsFolder::read_box(std::string_view name, const layout::Box& box,
                                         const device::Tensor& destination,
                                         Orientation orientation) const {
  const auto* entry = find(name);
  if (entry == nullptr) {
    std::vector<std::string> names;
    for (const auto& each : state_->entries) names.push_back(each.name);
    return base::checkpoint_failure(
        base::format("the weights have no tensor '{}'{}", name, base::did_you_mean(name, names)));
  }
  if (entry->dtype == SafetensorsType::other || destination.dtype() == device::DType::i32) {
    return base::checkpoint_failure(
        base::format("tensor '{}' is {} (F32, F16 and BF16 are read, into f32 or bf16)", name,
                     entry->dtype_text));
  }
  auto shape = entry->shape;
  const bool transposed = orientation == Orientation::transposed;
  if (transposed) std::reverse(shape.begin(), shape.end());
  if (!inside(box, shape) || !checkpoint::holds(destination, box) ||
      (transposed && shape.size() != 2)) {
    return base::checkpoint_failure(
        base::format("tensor '{}' [{}]: box {} does not fit it or the destination {}", name,
                     base::join(shape, ", "), layout::text(box), destination.text()));
  }
  if (layout::element_count(box) == 0) return {};
  const auto index = static_cast<std::size_t>(entry - state_->entries.data());
  const Conversion convert{entry->dtype, destination, safetensors_type_bits(entry->dtype_text) / 8};
  try {
    state_->read(state_->places[index],
                 transposed ? runs_transposed(entry->shape, box, destination)
                            : runs_as_stored(entry->shape, box, destination),
                 convert);
  } catch (const base::Error& error) {
    return base::Failure{error.code(), error.what()};
  }
  return {};
}

}  // namespace trireme::huggingface
