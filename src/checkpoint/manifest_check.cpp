#include "checkpoint/manifest_check.hpp"

#include "trireme/base/format.hpp"

#include "checkpoint/tiling.hpp"

#include <algorithm>
#include <bit>
#include <set>
#include <string_view>
#include <vector>

namespace trireme::checkpoint {
namespace {

constexpr std::uint64_t min_block_bytes = std::uint64_t{1} << 20;
constexpr std::uint64_t max_block_bytes = std::uint64_t{4} << 20;

base::Failure failure(std::string text) {
  return {base::ExitCode::checkpoint, std::move(text)};
}

/// "master.h5" or "shard-" digits ".h5": no name can lead out of the step's folder.
bool allowed_file_name(std::string_view name) {
  if (name == "master.h5") return true;
  constexpr std::string_view begin = "shard-";
  constexpr std::string_view end = ".h5";
  if (name.size() < begin.size() + 5 + end.size() || name.size() > 32) return false;
  if (!name.starts_with(begin) || !name.ends_with(end)) return false;
  const auto digits = name.substr(begin.size(), name.size() - begin.size() - end.size());
  return std::all_of(digits.begin(), digits.end(),
                     [](char letter) { return letter >= '0' && letter <= '9'; });
}

base::Status check_files(const Manifest& manifest) {
  if (!std::has_single_bit(manifest.block_bytes) || manifest.block_bytes < min_block_bytes ||
      manifest.block_bytes > max_block_bytes) {
    return failure(
        base::format("block_bytes = {} (1, 2 or 4 MiB are allowed)", manifest.block_bytes));
  }
  std::set<std::string_view> names;
  for (const auto& file : manifest.files) {
    if (!allowed_file_name(file.name)) {
      return failure(
          "a file's name is neither 'master.h5' nor 'shard-NNNNN.h5' (a manifest names files of "
          "its own folder alone)");
    }
    if (!names.insert(file.name).second) {
      return failure(base::format("file '{}' is named twice", file.name));
    }
    const auto blocks = file.bytes / manifest.block_bytes +
                        static_cast<std::uint64_t>(file.bytes % manifest.block_bytes != 0);
    if (file.crc32c.size() != blocks) {
      return failure(base::format("file '{}' has {} checksums for {} blocks", file.name,
                                  file.crc32c.size(), blocks));
    }
  }
  return {};
}

struct ByteRange {
  std::size_t file;
  std::uint64_t begin;
  std::uint64_t end;
  const StoredTensor* tensor;
};

/// The box is known to lie inside the tensor's shape.
base::Status check_range(const Manifest& manifest, const StoredTensor& tensor,
                         const StoredBox& stored, std::vector<ByteRange>& ranges) {
  if (stored.file >= manifest.files.size()) {
    return failure(base::format("tensor '{}' lies in file number {} of {}", tensor.name,
                                stored.file, manifest.files.size()));
  }
  const auto& file = manifest.files[stored.file];
  const auto size = device::size_of(tensor.dtype);
  const auto bytes = static_cast<std::uint64_t>(layout::element_count(stored.box)) * size;
  if (stored.byte % size != 0 || stored.byte > file.bytes || bytes > file.bytes - stored.byte) {
    return failure(
        base::format("tensor '{}': {} bytes at byte {} of '{}' do not lie inside its "
                     "{} bytes (at a multiple of {})",
                     tensor.name, bytes, stored.byte, file.name, file.bytes, size));
  }
  ranges.push_back({stored.file, stored.byte, stored.byte + bytes, &tensor});
  return {};
}

base::Status check_tensor(const Manifest& manifest, const StoredTensor& tensor,
                          std::vector<ByteRange>& ranges) {
  if (auto status = check_name(tensor.name); !status) return status;
  if (auto status = check_shape(tensor.name, tensor.shape); !status) return status;
  std::vector<layout::Box> boxes;
  for (const auto& stored : tensor.boxes) boxes.push_back(stored.box);
  if (auto status = check_tiling(tensor.name, tensor.shape, boxes); !status) return status;
  for (const auto& stored : tensor.boxes) {
    if (auto status = check_range(manifest, tensor, stored, ranges); !status) return status;
  }
  return {};
}

}  // namespace

base::Status check_manifest(const Manifest& manifest) {
  if (auto status = check_files(manifest); !status) return status;
  std::vector<ByteRange> ranges;
  const StoredTensor* previous = nullptr;
  for (const auto& tensor : manifest.tensors) {
    if (auto status = check_tensor(manifest, tensor, ranges); !status) return status;
    if (previous != nullptr && previous->name >= tensor.name) {
      return failure(
          base::format("tensors '{}' and '{}' do not ascend by name", previous->name, tensor.name));
    }
    previous = &tensor;
  }
  std::sort(ranges.begin(), ranges.end(), [](const ByteRange& a, const ByteRange& b) {
    return std::tie(a.file, a.begin) < std::tie(b.file, b.begin);
  });
  for (std::size_t index = 1; index < ranges.size(); ++index) {
    const auto& before = ranges[index - 1];
    const auto& here = ranges[index];
    if (before.file == here.file && before.end > here.begin) {
      return failure(base::format("tensors '{}' and '{}' overlap at byte {} of '{}'",
                                  before.tensor->name, here.tensor->name, here.begin,
                                  manifest.files[here.file].name));
    }
  }
  return {};
}

}  // namespace trireme::checkpoint
