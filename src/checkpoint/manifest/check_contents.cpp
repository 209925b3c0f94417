// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/format.hpp"

#include "checkpoint/manifest/check.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace trireme::checkpoint {
namespace {

base::Status check_bucket(const Bucket& bucket, std::size_t index, std::size_t files) {
  const auto& [first, stride, count] = bucket.files;
  if (count < 1 || stride < 1 || first >= files || count > files || stride > files ||
      bucket.files.at(count - 1) >= files) {
    return base::checkpoint_failure(
        base::format("bucket {} lies in files {} + n * {}, {} of them, but there are {}", index,
                     first, stride, count, files));
  }
  if (bucket.shard_elements < 1 ||
      bucket.shard_elements > max_elements / static_cast<std::int64_t>(count)) {
    return base::checkpoint_failure(base::format(
        "bucket {} has shards of {} elements (1 to 2^60 together)", index, bucket.shard_elements));
  }
  const auto size = device::size_of(bucket.dtype);
  if (bucket.byte % size != 0 || bucket.byte > INT64_MAX / 2) {
    return base::checkpoint_failure(base::format(
        "bucket {} begins at byte {} (at a multiple of {} below 2^62)", index, bucket.byte, size));
  }
  return {};
}

base::Status check_buckets(const Contents& contents, std::size_t files) {
  std::size_t shards = 0;
  for (std::size_t index = 0; index < contents.buckets.size(); ++index) {
    const auto& bucket = contents.buckets[index];
    if (auto status = check_bucket(bucket, index, files); !status) return status;
    shards += bucket.files.count;
    if (shards > max_shards) {
      return base::checkpoint_failure(
          base::format("the buckets have more than {} shards", max_shards));
    }
  }
  return {};
}

base::Status check_part(const Contents& contents, const StoredTensor& tensor,
                        const TensorPart& part) {
  if (part.bucket >= contents.buckets.size()) {
    return base::checkpoint_failure(base::format("tensor '{}' lies in bucket number {} of {}",
                                                 tensor.name, part.bucket,
                                                 contents.buckets.size()));
  }
  const auto& bucket = contents.buckets[part.bucket];
  if (bucket.dtype != tensor.dtype) {
    return base::checkpoint_failure(base::format("tensor '{}' is {} but lies in bucket {} of {}",
                                                 tensor.name, device::name(tensor.dtype),
                                                 part.bucket, device::name(bucket.dtype)));
  }
  const auto count = layout::element_count(part.box);
  const auto all = bucket.shard_elements * static_cast<std::int64_t>(bucket.files.count);
  if (part.begin < 0 || part.begin > all || count > all - part.begin) {
    return base::checkpoint_failure(
        base::format("tensor '{}': {} elements from {} on do not lie inside the {} of "
                     "bucket {}",
                     tensor.name, count, part.begin, all, part.bucket));
  }
  return {};
}

base::Status check_tensor(const Contents& contents, const StoredTensor& tensor) {
  if (auto status = check_name(tensor.name); !status) return status;
  if (auto status = check_shape(tensor.name, tensor.shape); !status) return status;
  std::vector<layout::Box> boxes;
  for (const auto& part : tensor.parts) boxes.push_back(part.box);
  if (auto status = check_tiling(tensor.name, tensor.shape, boxes); !status) return status;
  for (const auto& part : tensor.parts) {
    if (auto status = check_part(contents, tensor, part); !status) return status;
  }
  return {};
}

/// Names ascend, and none is also a folder of others: in master.h5 it would have to be a dataset
/// and a group at once.
base::Status check_names(const Contents& contents) {
  const auto& tensors = contents.tensors;
  for (std::size_t index = 0; index < tensors.size(); ++index) {
    const auto& name = tensors[index].name;
    if (index > 0 && tensors[index - 1].name >= name) {
      return base::checkpoint_failure(base::format("tensors '{}' and '{}' do not ascend by name",
                                                   tensors[index - 1].name, name));
    }
    for (auto at = name.find('/'); at != std::string::npos; at = name.find('/', at + 1)) {
      if (contents.find(std::string_view(name).substr(0, at)) == nullptr) continue;
      return base::checkpoint_failure(base::format(
          "tensor name '{}' begins with the name of tensor '{}'", name, name.substr(0, at)));
    }
  }
  return {};
}

/// Range of elements or bytes, and where it comes from.
struct Range {
  std::size_t where;
  std::uint64_t begin;
  std::uint64_t end;
  std::size_t source;
};

/// Two ranges that overlap, if any do.
std::optional<std::pair<Range, Range>> overlap_in(std::vector<Range>& ranges) {
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) {
    return std::tie(a.where, a.begin) < std::tie(b.where, b.begin);
  });
  for (std::size_t index = 1; index < ranges.size(); ++index) {
    const auto& before = ranges[index - 1];
    const auto& here = ranges[index];
    if (before.where == here.where && before.end > here.begin) return std::pair(before, here);
  }
  return std::nullopt;
}

base::Status check_parts_apart(const Contents& contents) {
  std::vector<Range> ranges;
  for (std::size_t index = 0; index < contents.tensors.size(); ++index) {
    for (const auto& part : contents.tensors[index].parts) {
      const auto begin = static_cast<std::uint64_t>(part.begin);
      const auto count = static_cast<std::uint64_t>(layout::element_count(part.box));
      ranges.push_back({part.bucket, begin, begin + count, index});
    }
  }
  if (const auto found = overlap_in(ranges)) {
    return base::checkpoint_failure(base::format(
        "tensors '{}' and '{}' overlap at element {} of bucket {}",
        contents.tensors[found->first.source].name, contents.tensors[found->second.source].name,
        found->second.begin, found->second.where));
  }
  return {};
}

/// No two buckets share a byte of a file. Most have the same files, all of them: those are
/// compared once, not file by file.
base::Status check_buckets_apart(const Contents& contents, std::size_t files) {
  std::map<FileRange, std::vector<std::size_t>> by_files;
  for (std::size_t index = 0; index < contents.buckets.size(); ++index) {
    by_files[contents.buckets[index].files].push_back(index);
  }
  std::vector<std::vector<const std::vector<std::size_t>*>> of_file(files);
  for (const auto& [range, buckets] : by_files) {
    for (std::size_t at = 0; at < range.count; ++at) of_file[range.at(at)].push_back(&buckets);
  }
  const std::vector<std::size_t>* compared = nullptr;
  for (const auto& lists : of_file) {
    if (lists.empty() || (lists.size() == 1 && lists[0] == compared)) continue;
    std::vector<Range> ranges;
    for (const auto* list : lists) {
      for (const auto index : *list) {
        const auto& bucket = contents.buckets[index];
        ranges.push_back({0, bucket.byte, bucket.byte + bucket.shard_bytes(), index});
      }
    }
    if (const auto found = overlap_in(ranges)) {
      return base::checkpoint_failure(base::format("buckets {} and {} overlap at byte {} of a file",
                                                   found->first.source, found->second.source,
                                                   found->second.begin));
    }
    if (lists.size() == 1) compared = lists[0];
  }
  return {};
}

}  // namespace

base::Status check_contents(const Contents& contents, std::size_t files) {
  if (auto status = check_buckets(contents, files); !status) return status;
  for (const auto& tensor : contents.tensors) {
    if (auto status = check_tensor(contents, tensor); !status) return status;
  }
  if (auto status = check_names(contents); !status) return status;
  if (auto status = check_parts_apart(contents); !status) return status;
  return check_buckets_apart(contents, files);
}

}  // namespace trireme::checkpoint
