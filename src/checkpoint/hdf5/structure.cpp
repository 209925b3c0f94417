// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/hdf5/structure.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"

#include "checkpoint/hdf5/hdf5.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <system_error>

namespace trireme::checkpoint::hdf5 {
namespace {

/// Dataset of a shard that holds a box.
struct BoxDataset {
  std::string path;
  bool whole_dataset;           ///< the dataset is this box; else a run of a one-dimensional arena
  std::int64_t first_element;   ///< of the run
  std::int64_t arena_elements;  ///< length of the arena

  layout::Shape shape(const layout::Box& box) const {
    return whole_dataset ? box.length : layout::Shape{arena_elements};
  }
};

/// Datasets, one per box, a pure function of names, types and boxes: the writer of a shard and the
/// writer of master.h5 compute the same.
std::vector<BoxDataset> datasets_of(const std::vector<HeldBox>& boxes) {
  std::vector<BoxDataset> datasets;
  std::map<device::DType, std::int64_t> arenas;
  for (const auto& held : boxes) {
    const auto elements = layout::element_count(held.box);
    if (static_cast<std::uint64_t>(elements) * device::size_of(held.dtype) < small_box_bytes) {
      const auto path = base::format("small_tensors/{}", device::name(held.dtype));
      datasets.push_back({path, false, arenas[held.dtype], 0});
      arenas[held.dtype] += elements;
    } else {
      const auto path = base::format("{}/at_{}", held.name, base::join(held.box.offset, "_"));
      datasets.push_back({path, true, 0, 0});
    }
  }
  for (std::size_t index = 0; index < boxes.size(); ++index) {
    if (datasets[index].whole_dataset) continue;
    // Size at least HDF5's alignment threshold, so that every dataset begins at a block.
    const auto least = alignment_threshold_bytes / device::size_of(boxes[index].dtype);
    datasets[index].arena_elements =
        std::max(arenas[boxes[index].dtype], static_cast<std::int64_t>(least));
  }
  return datasets;
}

/// Byte at which each dataset of a file begins, by path.
using Offsets = std::map<std::string, std::uint64_t>;

Offsets write_datasets(const std::filesystem::path& path, const std::vector<HeldBox>& boxes,
                       const std::vector<BoxDataset>& datasets) {
  auto file = create_file(path);
  Offsets offsets;
  std::map<std::string, std::vector<TableRow>> tables;
  for (std::size_t index = 0; index < boxes.size(); ++index) {
    const auto& held = boxes[index];
    const auto& place = datasets[index];
    if (!place.whole_dataset) {
      tables[place.path].push_back({held.name, place.first_element, held.shape, held.box});
    }
    if (offsets.contains(place.path)) continue;
    auto dataset =
        create_contiguous(file, place.path, element_type(held.dtype), place.shape(held.box));
    if (place.whole_dataset) {
      write_attribute(dataset, "box_offset", held.box.offset);
      write_attribute(dataset, "tensor_shape", held.shape);
    }
    offsets[place.path] = storage_offset(dataset);
    close(dataset);
  }
  for (const auto& [arena, rows] : tables) write_table(file, arena + "_table", rows);
  close(file);
  return offsets;
}

/// Verification of a written shard: HDF5 has been seen to report success on a full disk.
void check_shard(const std::filesystem::path& path, const Offsets& expected) {
  auto file = open_file(path);
  std::error_code error;
  const auto file_bytes = std::filesystem::file_size(path, error);
  for (const auto& [name, offset] : expected) {
    auto dataset = open_dataset(file, name);
    if (error || storage_offset(dataset) != offset || offset % alignment_bytes != 0 ||
        offset > file_bytes || storage_bytes(dataset) > file_bytes - offset) {
      throw base::Error(
          base::ExitCode::checkpoint,
          base::format("'{}': dataset '{}' is not where HDF5 put it (the disk may be full)",
                       path.string(), name));
    }
    close(dataset);
  }
  close(file);
}

/// Boxes of one shard, in the order of their bytes, which is the order of placement within every
/// dataset.
struct ShardContent {
  std::vector<std::uint64_t> bytes;
  std::vector<HeldBox> boxes;
  std::vector<BoxDataset> datasets;

  const BoxDataset& dataset_at(std::uint64_t byte) const {
    const auto found = std::lower_bound(bytes.begin(), bytes.end(), byte);
    return datasets[static_cast<std::size_t>(found - bytes.begin())];
  }
};

std::vector<ShardContent> contents_of(const Manifest& manifest) {
  struct Entry {
    const StoredTensor* tensor;
    const StoredBox* stored;
  };
  std::vector<std::vector<Entry>> entries(manifest.files.size());
  for (const auto& tensor : manifest.tensors) {
    for (const auto& stored : tensor.boxes) entries[stored.file].push_back({&tensor, &stored});
  }
  std::vector<ShardContent> shards(entries.size());
  for (std::size_t index = 0; index < entries.size(); ++index) {
    auto& shard = shards[index];
    std::sort(entries[index].begin(), entries[index].end(),
              [](const Entry& a, const Entry& b) { return a.stored->byte < b.stored->byte; });
    for (const auto& [tensor, stored] : entries[index]) {
      shard.bytes.push_back(stored->byte);
      shard.boxes.push_back({tensor->name, tensor->shape, tensor->dtype, stored->box});
    }
    shard.datasets = datasets_of(shard.boxes);
  }
  return shards;
}

void write_tensor(const File& file, const Manifest& manifest, const StoredTensor& tensor,
                  const std::vector<ShardContent>& shards) {
  const auto layout = virtual_layout();
  const auto where = create_simple(tensor.shape);
  for (const auto& stored : tensor.boxes) {
    select_hyperslab(where, stored.box);
    const auto& place = shards[stored.file].dataset_at(stored.byte);
    const auto source = create_simple(place.shape(stored.box));
    if (!place.whole_dataset) {
      select_hyperslab(source, {{place.first_element}, {layout::element_count(stored.box)}});
    }
    set_virtual(layout, where, manifest.files[stored.file].name, place.path, source);
  }
  create_virtual(file, tensor.name, element_type(tensor.dtype), tensor.shape, layout);
}

}  // namespace

std::vector<std::uint64_t> create_shard(const std::filesystem::path& path,
                                        const std::vector<HeldBox>& boxes) {
  const auto datasets = datasets_of(boxes);
  const auto offsets = write_datasets(path, boxes, datasets);
  check_shard(path, offsets);
  std::vector<std::uint64_t> bytes;
  for (std::size_t index = 0; index < boxes.size(); ++index) {
    const auto first = static_cast<std::uint64_t>(datasets[index].first_element);
    bytes.push_back(offsets.at(datasets[index].path) + first * device::size_of(boxes[index].dtype));
  }
  return bytes;
}

void create_master(const std::filesystem::path& path, const Manifest& manifest) {
  auto file = create_file(path);
  write_attribute(file, "format", "trireme-checkpoint");
  write_attribute(file, "step", std::to_string(manifest.step));
  const auto shards = contents_of(manifest);
  for (const auto& tensor : manifest.tensors) write_tensor(file, manifest, tensor, shards);
  close(file);
  // Verification: HDF5's report of success is not relied on.
  auto written = open_file(path);
  for (const auto& tensor : manifest.tensors) {
    auto dataset = open_dataset(written, tensor.name);
    close(dataset);
  }
  close(written);
}

}  // namespace trireme::checkpoint::hdf5
