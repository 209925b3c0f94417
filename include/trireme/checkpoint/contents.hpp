// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"
#include "trireme/device/dtype.hpp"
#include "trireme/layout/box.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trireme::checkpoint {

/// Files number first, first + stride, ..., `count` of them: those of the ranks of a
/// data-parallel group, say.
struct FileRange {
  std::size_t first = 0;
  std::size_t stride = 1;
  std::size_t count = 1;

  std::size_t at(std::size_t position) const { return first + position * stride; }
  /// Position of a file among them.
  std::optional<std::size_t> position_of(std::size_t file) const;
  auto operator<=>(const FileRange&) const = default;
};

/// Elements of one type, cut into equal consecutive shards, one for each of `files` in their
/// order: one state of a bucket of layout::FlatLayout, as data-parallel ranks share it.
struct Bucket {
  device::DType dtype = device::DType::f32;
  FileRange files;
  std::int64_t shard_elements = 0;
  std::uint64_t byte = 0;  ///< of the shard's first element, in each of the files

  std::uint64_t shard_bytes() const {
    return static_cast<std::uint64_t>(shard_elements) * device::size_of(dtype);
  }
};

/// Box of a tensor whose elements follow each other, row-major, in a bucket.
struct TensorPart {
  layout::Box box;
  std::size_t bucket = 0;  ///< index into Contents::buckets
  std::int64_t begin = 0;  ///< place of the box's first element in the bucket
};

/// Logical tensor. The boxes of its parts cover it and do not overlap.
struct StoredTensor {
  std::string name;
  device::DType dtype = device::DType::f32;
  layout::Shape shape;
  std::vector<TensorPart> parts;
};

/// Elements [begin, end) of a part, row-major in its box, that lie in one file.
struct PartSlice {
  std::size_t file = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::uint64_t byte = 0;  ///< of element `begin`, in the file
};

/// Where the elements of all tensors of a checkpoint lie. Its size grows with parameters and ranks,
/// not with their product: the slices of a part follow from its place in a bucket.
struct Contents {
  std::vector<Bucket> buckets;
  std::vector<StoredTensor> tensors;  ///< ascending by name

  /// Null when there is none of this name.
  const StoredTensor* find(std::string_view name) const;
  /// Bytes of all tensors together.
  std::uint64_t payload_bytes() const;
  /// Bytes of the shards in one file.
  std::uint64_t bytes_in_file(std::size_t file) const;
  /// A hash of everything, the same on all machines.
  std::uint64_t hash() const;

  /// Positions in the bucket's files that hold elements [first, last) of the part.
  struct Positions {
    std::size_t begin;
    std::size_t end;
  };
  Positions positions_of(const TensorPart& part, std::int64_t first, std::int64_t last) const;
  /// Slice of the part in the file at this position of its bucket; may be empty.
  PartSlice slice_at(const TensorPart& part, std::size_t position) const;
};

/// One-dimensional dataset of a file, which all its shards of one type form.
struct ShardDataset {
  device::DType dtype = device::DType::f32;
  std::uint64_t byte = 0;
  std::int64_t elements = 0;
};
/// Datasets of all files that the buckets name, by file: f32 before bf16 before i32. A pure
/// function of the buckets.
std::vector<std::vector<ShardDataset>> shard_datasets(const std::vector<Bucket>& buckets);

/// Builds contents part by part.
class ContentsBuilder {
 public:
  /// Files are numbered by the rank that writes them.
  std::size_t add_bucket(device::DType dtype, const FileRange& files, std::int64_t shard_elements);
  /// Adds a part, whose elements begin at `begin` of the bucket, to the tensor of this name.
  /// Throws Error (internal) when it contradicts an earlier part in shape or type.
  void add_part(const std::string& name, const layout::Shape& shape, layout::Box box,
                std::size_t bucket, std::int64_t begin);
  /// Contents with every bucket placed in its files. Throws Error (internal) unless each element
  /// of each tensor is in exactly one part.
  Contents take();

 private:
  Contents contents_;
  std::map<std::string, std::size_t> index_;  // of tensors
};

}  // namespace trireme::checkpoint
