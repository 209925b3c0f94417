// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/manifest/check.hpp"

#include "trireme/base/format.hpp"

#include <algorithm>
#include <bit>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace trireme::checkpoint {
namespace {

constexpr std::uint64_t min_block_bytes = std::uint64_t{1} << 20;
constexpr std::uint64_t max_block_bytes = std::uint64_t{4} << 20;

base::Failure failure(std::string text) {
  return {base::ExitCode::checkpoint, std::move(text)};
}

bool is_name_letter(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
         (letter >= '0' && letter <= '9') || letter == '.' || letter == '_' || letter == '-' ||
         letter == ':' || letter == '+';
}

/// Names of untrusted origin are shown short and without control characters.
std::string shown(std::string_view name) {
  std::string text;
  for (const char letter : name.substr(0, 80)) {
    text += letter >= ' ' && letter <= '~' ? letter : '?';
  }
  return name.size() > 80 ? text + "…" : text;
}

bool inside(const layout::Box& box, const layout::Shape& shape) {
  if (box.offset.size() != shape.size() || box.length.size() != shape.size()) return false;
  for (std::size_t index = 0; index < shape.size(); ++index) {
    if (box.offset[index] < 0 || box.length[index] < 1 || box.offset[index] > shape[index] ||
        box.length[index] > shape[index] - box.offset[index]) {
      return false;
    }
  }
  return true;
}

/// The dimension along which a sweep meets the fewest boxes at once.
std::size_t sweep_dimension(std::span<const layout::Box> boxes, std::size_t dimensions) {
  std::size_t best = 0;
  std::size_t most = 0;
  for (std::size_t index = 0; index < dimensions; ++index) {
    std::set<std::int64_t> offsets;
    for (const auto& box : boxes) offsets.insert(box.offset[index]);
    if (offsets.size() > most) {
      most = offsets.size();
      best = index;
    }
  }
  return best;
}

base::Status check_no_overlap(std::string_view name, std::span<const layout::Box> boxes,
                              std::size_t dimensions) {
  const auto along = sweep_dimension(boxes, dimensions);
  std::vector<const layout::Box*> order;
  for (const auto& box : boxes) order.push_back(&box);
  std::sort(order.begin(), order.end(),
            [along](const auto* a, const auto* b) { return a->offset[along] < b->offset[along]; });
  std::vector<const layout::Box*> open;
  for (const auto* box : order) {
    std::erase_if(open, [&](const auto* other) {
      return other->offset[along] + other->length[along] <= box->offset[along];
    });
    for (const auto* other : open) {
      if (layout::intersect(*box, *other)) {
        return failure(base::format("tensor '{}': boxes {} and {} overlap", name,
                                    layout::text(*other), layout::text(*box)));
      }
    }
    open.push_back(box);
  }
  return {};
}

}  // namespace

base::Status check_name(std::string_view name) {
  if (name.empty() || name.size() > max_name_length) {
    return failure(base::format("tensor name '{}' has {} characters (1 to {} are allowed)",
                                shown(name), name.size(), max_name_length));
  }
  std::string_view rest = name;
  for (bool first = true;; first = false) {
    const auto slash = rest.find('/');
    const auto part = rest.substr(0, slash);
    if (part.empty() || part == "." || part == ".." || part.starts_with("at_") ||
        (first && part == "small_tensors") ||
        !std::all_of(part.begin(), part.end(), is_name_letter)) {
      return failure(base::format(
          "tensor name '{}' is not allowed (parts of letters, digits and ._-:+ joined by '/', "
          "none empty, '.', '..' or beginning with 'at_', the first not 'small_tensors')",
          shown(name)));
    }
    if (slash == std::string_view::npos) return {};
    rest.remove_prefix(slash + 1);
  }
}

base::Status check_shape(std::string_view name, const layout::Shape& shape) {
  if (shape.empty() || shape.size() > max_dimensions) {
    return failure(base::format("tensor '{}' has {} dimensions (1 to {} are allowed)", name,
                                shape.size(), max_dimensions));
  }
  std::int64_t rest = std::int64_t{1} << 60;
  for (const auto length : shape) {
    if (length < 1 || length > rest) {
      return failure(
          base::format("tensor '{}' has shape [{}] (lengths must be positive and their "
                       "product below 2^60)",
                       name, base::join(shape, ", ")));
    }
    rest /= length;
  }
  return {};
}

base::Status check_tiling(std::string_view name, const layout::Shape& shape,
                          std::span<const layout::Box> boxes) {
  if (boxes.size() > max_boxes_per_tensor) {
    return failure(base::format("tensor '{}' has {} boxes (at most {} are allowed)", name,
                                boxes.size(), max_boxes_per_tensor));
  }
  std::int64_t covered = 0;
  for (const auto& box : boxes) {
    if (!inside(box, shape)) {
      return failure(base::format("tensor '{}': a box does not lie inside the shape [{}]", name,
                                  base::join(shape, ", ")));
    }
  }
  if (auto status = check_no_overlap(name, boxes, shape.size()); !status) return status;
  for (const auto& box : boxes) covered += layout::element_count(box);
  const auto all = layout::element_count(shape);
  if (covered != all) {
    return failure(
        base::format("tensor '{}': its boxes hold {} of {} elements", name, covered, all));
  }
  return {};
}

namespace {

/// True for "master.h5" or "shard-" digits ".h5": no name can lead out of the step's folder.
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

/// `stored` is known to lie inside the tensor's shape.
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
