// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/hdf5/structure.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"

#include "checkpoint/hdf5/hdf5.hpp"

#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <string>

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

/// Makes a file that only this process knows, has `fill` write it, and tells its length. One thread
/// at a time: a save and a copy of an earlier one may be under way, and HDF5 is not thread-safe
/// unless it was built so (H5is_library_threadsafe).
Structure in_memory(const char* name, const std::function<void(const File&)>& fill) {
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  Structure made{base::File::adopt(::memfd_create(name, MFD_CLOEXEC)), 0};
  if (!made.file) {
    throw base::Error(base::ExitCode::checkpoint,
                      base::format("cannot make a file in memory: {}", std::strerror(errno)));
  }
  auto file = create_file(base::format("/proc/self/fd/{}", made.file.get()));
  fill(file);
  close(file);
  struct stat facts {};
  if (::fstat(made.file.get(), &facts) != 0) {
    throw base::Error(base::ExitCode::checkpoint,
                      base::format("cannot examine a file in memory: {}", std::strerror(errno)));
  }
  made.bytes = static_cast<std::uint64_t>(facts.st_size);
  return made;
}

/// Verification: a library that aligns otherwise would put values where no reader looks for them.
void check_place(const Dataset& dataset, const ShardDataset& expected) {
  const auto offset = storage_offset(dataset);
  if (offset == expected.byte) return;
  throw base::Error(base::ExitCode::checkpoint,
                    base::format("HDF5 lays dataset '{}' at byte {}, not at {}; please report this",
                                 path_of(expected.dtype), offset, expected.byte));
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

Structure shard_structure(const Contents& contents, std::size_t rank) {
  const auto all = shard_datasets(contents.buckets);
  const auto datasets = rank < all.size() ? all[rank] : std::vector<ShardDataset>{};
  return in_memory("shard.h5", [&](const File& file) {
    for (const auto& each : datasets) {
      auto dataset =
          create_contiguous(file, path_of(each.dtype), element_type(each.dtype), {each.elements});
      check_place(dataset, each);
      close(dataset);
    }
    for (const auto& [dtype, rows] : tables_of(contents, rank, datasets)) {
      write_table(file, path_of(dtype) + "_table", rows);
    }
  });
}

Structure master_structure(const Manifest& manifest) {
  return in_memory("master.h5", [&](const File& file) {
    write_attribute(file, "format", "trireme-checkpoint");
    write_attribute(file, "step", std::to_string(manifest.step));
    const auto datasets = shard_datasets(manifest.contents.buckets);
    for (const auto& tensor : manifest.contents.tensors) {
      write_tensor(file, manifest, tensor, datasets);
    }
  });
}

}  // namespace trireme::checkpoint::hdf5
