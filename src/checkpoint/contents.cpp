// SPDX-License-Identifier: Apache-2.0
#include "trireme/checkpoint/contents.hpp"

#include "trireme/base/contract.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/text.hpp"

#include "checkpoint/hdf5/hdf5.hpp"
#include "checkpoint/manifest/check.hpp"

#include <algorithm>
#include <utility>

namespace trireme::checkpoint {
namespace {

constexpr device::DType stored_types[] = {device::DType::f32, device::DType::bf16,
                                          device::DType::i32};

std::uint64_t aligned(std::uint64_t byte) {
  return (byte + hdf5::alignment_bytes - 1) / hdf5::alignment_bytes * hdf5::alignment_bytes;
}

std::size_t file_count(const std::vector<Bucket>& buckets) {
  std::size_t count = 0;
  for (const auto& [dtype, files, elements, byte] : buckets) {
    count = std::max(count, files.at(files.count - 1) + 1);
  }
  return count;
}

/// Bytes of a dataset: small ones are lengthened, because HDF5 aligns none below its threshold.
std::uint64_t dataset_bytes(std::uint64_t bytes) {
  return std::max(bytes, hdf5::alignment_threshold_bytes);
}

/// Gives each bucket the byte at which it begins in all its files: type after type, each type
/// from a multiple of HDF5's alignment on, where HDF5 then puts the dataset.
void place(std::vector<Bucket>& buckets) {
  std::vector<std::uint64_t> ends(file_count(buckets), 0);
  for (const auto dtype : stored_types) {
    std::vector<std::uint64_t> begins;
    for (const auto end : ends) begins.push_back(std::max(aligned(end), hdf5::alignment_bytes));
    auto next = begins;
    for (auto& bucket : buckets) {
      if (bucket.dtype != dtype) continue;
      const auto& files = bucket.files;
      bucket.byte = next[files.first];
      for (std::size_t at = 0; at < files.count; ++at) {
        auto& here = next[files.at(at)];
        TRIREME_EXPECT(here == bucket.byte, "files that share one bucket share all of them");
        here += bucket.shard_bytes();
      }
    }
    for (std::size_t file = 0; file < ends.size(); ++file) {
      if (next[file] == begins[file]) continue;
      ends[file] = begins[file] + dataset_bytes(next[file] - begins[file]);
    }
  }
}

}  // namespace

std::optional<std::size_t> FileRange::position_of(std::size_t file) const {
  if (file < first || (file - first) % stride != 0) return std::nullopt;
  const auto position = (file - first) / stride;
  if (position >= count) return std::nullopt;
  return position;
}

const StoredTensor* Contents::find(std::string_view name) const {
  const auto found = std::lower_bound(
      tensors.begin(), tensors.end(), name,
      [](const StoredTensor& each, std::string_view key) { return each.name < key; });
  return found != tensors.end() && found->name == name ? &*found : nullptr;
}

std::uint64_t Contents::payload_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& tensor : tensors) {
    bytes += static_cast<std::uint64_t>(layout::element_count(tensor.shape)) *
             device::size_of(tensor.dtype);
  }
  return bytes;
}

std::uint64_t Contents::bytes_in_file(std::size_t file) const {
  std::uint64_t bytes = 0;
  for (const auto& bucket : buckets) {
    if (bucket.files.position_of(file)) bytes += bucket.shard_bytes();
  }
  return bytes;
}

std::uint64_t Contents::hash() const {
  base::Fnv1a hash;
  const auto add = [&](const layout::Shape& numbers) {
    for (const auto number : numbers) hash.add_word(static_cast<std::uint64_t>(number));
  };
  for (const auto& [dtype, files, elements, byte] : buckets) {
    hash.add_word(static_cast<std::uint64_t>(dtype));
    for (const auto number : {files.first, files.stride, files.count}) hash.add_word(number);
    hash.add_word(static_cast<std::uint64_t>(elements)).add_word(byte);
  }
  for (const auto& tensor : tensors) {
    hash.add(tensor.name).add_word(static_cast<std::uint64_t>(tensor.dtype));
    add(tensor.shape);
    for (const auto& part : tensor.parts) {
      add(part.box.offset);
      add(part.box.length);
      hash.add_word(part.bucket).add_word(static_cast<std::uint64_t>(part.begin));
    }
  }
  return hash.value();
}

Contents::Positions Contents::positions_of(const TensorPart& part, std::int64_t first,
                                           std::int64_t last) const {
  const auto shard = buckets[part.bucket].shard_elements;
  return {static_cast<std::size_t>((part.begin + first) / shard),
          static_cast<std::size_t>((part.begin + last + shard - 1) / shard)};
}

PartSlice Contents::slice_at(const TensorPart& part, std::size_t position) const {
  const auto& bucket = buckets[part.bucket];
  const auto shard_begin = static_cast<std::int64_t>(position) * bucket.shard_elements;
  PartSlice slice;
  slice.file = bucket.files.at(position);
  slice.begin = std::max<std::int64_t>(0, shard_begin - part.begin);
  slice.end =
      std::min(layout::element_count(part.box), shard_begin + bucket.shard_elements - part.begin);
  slice.byte = bucket.byte + static_cast<std::uint64_t>(part.begin + slice.begin - shard_begin) *
                                 device::size_of(bucket.dtype);
  return slice;
}

std::vector<std::vector<ShardDataset>> shard_datasets(const std::vector<Bucket>& buckets) {
  std::vector<std::vector<ShardDataset>> datasets(file_count(buckets));
  for (const auto dtype : stored_types) {
    for (const auto& bucket : buckets) {
      if (bucket.dtype != dtype) continue;
      for (std::size_t at = 0; at < bucket.files.count; ++at) {
        auto& here = datasets[bucket.files.at(at)];
        if (here.empty() || here.back().dtype != dtype) here.push_back({dtype, bucket.byte, 0});
        const auto bytes = dataset_bytes(bucket.byte + bucket.shard_bytes() - here.back().byte);
        here.back().elements = std::max(here.back().elements,
                                        static_cast<std::int64_t>(bytes / device::size_of(dtype)));
      }
    }
  }
  return datasets;
}

std::size_t ContentsBuilder::add_bucket(device::DType dtype, const FileRange& files,
                                        std::int64_t shard_elements) {
  contents_.buckets.push_back({dtype, files, shard_elements, 0});
  return contents_.buckets.size() - 1;
}

void ContentsBuilder::add_part(const std::string& name, const layout::Shape& shape, layout::Box box,
                               std::size_t bucket, std::int64_t begin) {
  const auto dtype = contents_.buckets[bucket].dtype;
  const auto [found, is_new] = index_.try_emplace(name, contents_.tensors.size());
  if (is_new) contents_.tensors.push_back({name, dtype, shape, {}});
  auto& tensor = contents_.tensors[found->second];
  if (tensor.shape != shape || tensor.dtype != dtype) {
    throw base::Error(
        base::ExitCode::internal,
        base::format("tensor '{}' is {} [{}] and also {} [{}] (its parts must be alike)", name,
                     device::name(tensor.dtype), base::join(tensor.shape, ", "),
                     device::name(dtype), base::join(shape, ", ")));
  }
  tensor.parts.push_back({std::move(box), bucket, begin});
}

Contents ContentsBuilder::take() {
  auto& tensors = contents_.tensors;
  std::sort(tensors.begin(), tensors.end(),
            [](const StoredTensor& a, const StoredTensor& b) { return a.name < b.name; });
  for (auto& tensor : tensors) {
    std::sort(tensor.parts.begin(), tensor.parts.end(),
              [](const auto& a, const auto& b) { return a.box.offset < b.box.offset; });
  }
  place(contents_.buckets);
  if (const auto status = check_contents(contents_, file_count(contents_.buckets)); !status) {
    throw base::Error(base::ExitCode::internal, status.failure().text);
  }
  index_.clear();
  return std::exchange(contents_, {});
}

}  // namespace trireme::checkpoint
