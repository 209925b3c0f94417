// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/manifest/check.hpp"

#include "trireme/base/format.hpp"

#include <algorithm>
#include <bit>
#include <set>
#include <string>
#include <vector>

namespace trireme::checkpoint {
namespace {

constexpr std::uint64_t min_block_bytes = std::uint64_t{1} << 20;
constexpr std::uint64_t max_block_bytes = std::uint64_t{4} << 20;

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
        return base::checkpoint_failure(base::format("tensor '{}': boxes {} and {} overlap", name,
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
    return base::checkpoint_failure(
        base::format("tensor name '{}' has {} characters (1 to {} are allowed)", shown(name),
                     name.size(), max_name_length));
  }
  for (std::string_view rest = name;;) {
    const auto slash = rest.find('/');
    const auto part = rest.substr(0, slash);
    if (part.empty() || part == "." || part == ".." ||
        !std::all_of(part.begin(), part.end(), is_name_letter)) {
      return base::checkpoint_failure(base::format(
          "tensor name '{}' is not allowed (parts of letters, digits and ._-:+ joined by '/', "
          "none empty, '.' or '..')",
          shown(name)));
    }
    if (slash == std::string_view::npos) return {};
    rest.remove_prefix(slash + 1);
  }
}

base::Status check_shape(std::string_view name, const layout::Shape& shape) {
  if (shape.empty() || shape.size() > max_dimensions) {
    return base::checkpoint_failure(base::format(
        "tensor '{}' has {} dimensions (1 to {} are allowed)", name, shape.size(), max_dimensions));
  }
  std::int64_t rest = max_elements;
  for (const auto length : shape) {
    if (length < 1 || length > rest) {
      return base::checkpoint_failure(
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
  if (boxes.size() > max_parts_per_tensor) {
    return base::checkpoint_failure(
        base::format("tensor '{}' has {} boxes (at most {} are allowed)", name, boxes.size(),
                     max_parts_per_tensor));
  }
  std::int64_t covered = 0;
  for (const auto& box : boxes) {
    if (!inside(box, shape)) {
      return base::checkpoint_failure(base::format(
          "tensor '{}': a box does not lie inside the shape [{}]", name, base::join(shape, ", ")));
    }
  }
  if (auto status = check_no_overlap(name, boxes, shape.size()); !status) return status;
  for (const auto& box : boxes) covered += layout::element_count(box);
  const auto all = layout::element_count(shape);
  if (covered != all) {
    return base::checkpoint_failure(
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

bool is_digest(std::string_view text) {
  return text.size() == 64 && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

/// One name, of letters and digits: it cannot lead out of the step's folder.
base::Status check_folder(const Manifest& manifest) {
  constexpr std::size_t longest = 64;
  const auto& folder = manifest.folder;
  if (folder.size() <= longest && std::all_of(folder.begin(), folder.end(), [](char letter) {
        return (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9');
      })) {
    return {};
  }
  return base::checkpoint_failure(
      base::format("'folder' is not up to {} lower-case letters and digits (a manifest names "
                   "files of its own folder alone)",
                   longest));
}

base::Status check_checksums(const Manifest& manifest, const StoredFile& file) {
  const auto blocks = manifest.block_count(file);
  if (!file.crc32c.empty() && file.crc32c.size() != blocks) {
    return base::checkpoint_failure(base::format("file '{}' has {} checksums for {} blocks",
                                                 file.name, file.crc32c.size(), blocks));
  }
  if (file.crc32c.empty() && blocks > 0 && !is_digest(file.checksums_sha256)) {
    return base::checkpoint_failure(
        base::format("file '{}': 'checksums_sha256' is not 64 hexadecimal digits", file.name));
  }
  if (!file.digests_sha256.empty() && !is_digest(file.digests_sha256)) {
    return base::checkpoint_failure(
        base::format("file '{}': 'digests_sha256' is not 64 hexadecimal digits", file.name));
  }
  return {};
}

base::Status check_files(const Manifest& manifest) {
  if (!std::has_single_bit(manifest.block_bytes) || manifest.block_bytes < min_block_bytes ||
      manifest.block_bytes > max_block_bytes) {
    return base::checkpoint_failure(
        base::format("block_bytes = {} (1, 2 or 4 MiB are allowed)", manifest.block_bytes));
  }
  if (auto status = check_folder(manifest); !status) return status;
  std::set<std::string_view> names;
  for (const auto& file : manifest.files) {
    if (!allowed_file_name(file.name)) {
      return base::checkpoint_failure(
          "a file's name is neither 'master.h5' nor 'shard-NNNNN.h5' (a manifest names files of "
          "its own folder alone)");
    }
    if (!names.insert(file.name).second) {
      return base::checkpoint_failure(base::format("file '{}' is named twice", file.name));
    }
    if (auto status = check_checksums(manifest, file); !status) return status;
  }
  return {};
}

base::Status check_lengths(const Manifest& manifest) {
  for (std::size_t index = 0; index < manifest.contents.buckets.size(); ++index) {
    const auto& bucket = manifest.contents.buckets[index];
    for (std::size_t at = 0; at < bucket.files.count; ++at) {
      const auto& file = manifest.files[bucket.files.at(at)];
      if (bucket.byte > file.bytes || bucket.shard_bytes() > file.bytes - bucket.byte) {
        return base::checkpoint_failure(
            base::format("bucket {}: {} bytes at byte {} of '{}' do not lie inside its "
                         "{} bytes",
                         index, bucket.shard_bytes(), bucket.byte, file.name, file.bytes));
      }
    }
  }
  return {};
}

}  // namespace

base::Status check_manifest(const Manifest& manifest) {
  if (auto status = check_files(manifest); !status) return status;
  if (auto status = check_contents(manifest.contents, manifest.files.size()); !status) {
    return status;
  }
  return check_lengths(manifest);
}

}  // namespace trireme::checkpoint
