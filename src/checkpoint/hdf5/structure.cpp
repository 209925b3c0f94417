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

/// Box of a tensor that is a run of a file's dataset.
struct DatasetRun {
  layout::Box box;
  std::int64_t first_element;
};

const ShardDataset& dataset_of(const std::vector<ShardDataset>& datasets, device::DType dtype) {
  return *std::find_if(datasets.begin(), datasets.end(),
                       [dtype](const ShardDataset& each) { return each.dtype == dtype; });
}

std::vector<DatasetRun> runs_of(const TensorPart& part, const PartSlice& slice,
                                const ShardDataset& dataset) {
  std::vector<DatasetRun> runs;
  auto first =
      static_cast<std::int64_t>((slice.byte - dataset.byte) / device::size_of(dataset.dtype));
  for (auto& box : layout::boxes_of_flat_range(part.box, slice.begin, slice.end)) {
    const auto count = layout::element_count(box);
    runs.push_back({std::move(box), first});
    first += count;
  }
  return runs;
}

/// Rows for every tensor with elements in the rank's file, by type, in the order of the elements.
std::map<device::DType, std::vector<TableRow>> tables_of(
    const Contents& contents, std::size_t rank, const std::vector<ShardDataset>& datasets) {
  std::map<device::DType, std::vector<TableRow>> tables;
  for (const auto& tensor : contents.tensors) {
    for (const auto& part : tensor.parts) {
      const auto position = contents.buckets[part.bucket].files.position_of(rank);
      if (!position) continue;
      const auto slice = contents.slice_at(part, *position);
      if (slice.begin >= slice.end) continue;
      for (auto& run : runs_of(part, slice, dataset_of(datasets, tensor.dtype))) {
        tables[tensor.dtype].push_back(
            {tensor.name, run.first_element, tensor.shape, std::move(run.box)});
      }
    }
  }
  for (auto& [dtype, rows] : tables) {
    std::sort(rows.begin(), rows.end(), [](const TableRow& a, const TableRow& b) {
      return a.first_element < b.first_element;
    });
  }
  return tables;
}

std::string path_of(device::DType dtype) {
  return base::format("/{}", device::name(dtype));
}

/// Verification of a written shard: HDF5 has been seen to report success on a full disk, and a
/// library that aligns otherwise would put values where no reader looks for them.
void check_shard(const std::filesystem::path& path, const std::vector<ShardDataset>& datasets) {
  auto file = open_file(path);
  std::error_code error;
  const auto file_bytes = std::filesystem::file_size(path, error);
  for (const auto& [dtype, byte, elements] : datasets) {
    auto dataset = open_dataset(file, path_of(dtype));
    const auto offset = storage_offset(dataset);
    if (error || offset != byte || offset > file_bytes ||
        storage_bytes(dataset) > file_bytes - offset) {
      throw base::Error(
          base::ExitCode::checkpoint,
          base::format("'{}': dataset '{}' is at byte {} of {}, not at {} (the disk may be full)",
                       path.string(), path_of(dtype), offset, file_bytes, byte));
    }
    close(dataset);
  }
  close(file);
}

void write_tensor(const File& file, const Manifest& manifest, const StoredTensor& tensor,
                  const std::vector<std::vector<ShardDataset>>& datasets) {
  const auto& contents = manifest.contents;
  const auto layout = virtual_layout();
  const auto where = create_simple(tensor.shape);
  for (const auto& part : tensor.parts) {
    const auto positions = contents.positions_of(part, 0, layout::element_count(part.box));
    for (auto at = positions.begin; at < positions.end; ++at) {
      const auto slice = contents.slice_at(part, at);
      const auto& dataset = dataset_of(datasets[slice.file], tensor.dtype);
      const auto source = create_simple({dataset.elements});
      for (const auto& [box, first_element] : runs_of(part, slice, dataset)) {
        select_hyperslab(where, box);
        select_hyperslab(source, {{first_element}, {layout::element_count(box)}});
        set_virtual(layout, where, manifest.files[slice.file].name, path_of(tensor.dtype), source);
      }
    }
  }
  create_virtual(file, tensor.name, element_type(tensor.dtype), tensor.shape, layout);
}

}  // namespace

void create_shard(const std::filesystem::path& path, const Contents& contents, std::size_t rank) {
  const auto all = shard_datasets(contents.buckets);
  const auto datasets = rank < all.size() ? all[rank] : std::vector<ShardDataset>{};
  auto file = create_file(path);
  for (const auto& [dtype, byte, elements] : datasets) {
    auto dataset = create_contiguous(file, path_of(dtype), element_type(dtype), {elements});
    close(dataset);
  }
  for (const auto& [dtype, rows] : tables_of(contents, rank, datasets)) {
    write_table(file, path_of(dtype) + "_table", rows);
  }
  close(file);
  check_shard(path, datasets);
}

void create_master(const std::filesystem::path& path, const Manifest& manifest) {
  auto file = create_file(path);
  write_attribute(file, "format", "trireme-checkpoint");
  write_attribute(file, "step", std::to_string(manifest.step));
  const auto datasets = shard_datasets(manifest.contents.buckets);
  for (const auto& tensor : manifest.contents.tensors) {
    write_tensor(file, manifest, tensor, datasets);
  }
  close(file);
  // Verification: HDF5's report of success is not relied on.
  auto written = open_file(path);
  for (const auto& tensor : manifest.contents.tensors) {
    auto dataset = open_dataset(written, tensor.name);
    close(dataset);
  }
  close(written);
}

}  // namespace trireme::checkpoint::hdf5
