// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"
#include "trireme/checkpoint/manifest.hpp"
#include "trireme/layout/box.hpp"

#include <span>
#include <string_view>

namespace trireme::checkpoint {

/// A manifest ends with its digest, in a form of one length.
inline constexpr std::string_view digest_begin = ",\n\"sha256\":\"";
inline constexpr std::string_view digest_end = "\"}\n";
inline constexpr std::size_t digest_bytes = digest_begin.size() + 64 + digest_end.size();

/// Limits of a checkpoint's contents, whoever wrote it.
constexpr std::size_t max_dimensions = 4;
constexpr std::size_t max_parts_per_tensor = 65'536;
constexpr std::size_t max_name_length = 512;
/// Most elements of a tensor, and of a bucket.
constexpr std::int64_t max_elements = std::int64_t{1} << 60;
/// Shards of all buckets together.
constexpr std::size_t max_shards = std::size_t{1} << 28;

/// A tensor's name: parts of letters, digits and "._-:+" joined by '/', each a safe HDF5 link
/// name.
base::Status check_name(std::string_view name);

/// One to four dimensions, each positive, their product below 2^60.
base::Status check_shape(std::string_view name, const layout::Shape& shape);

/// Boxes of as many dimensions as the shape, inside it, without overlap and without gap.
/// Failures (checkpoint) name the tensor and the boxes.
base::Status check_tiling(std::string_view name, const layout::Shape& shape,
                          std::span<const layout::Box> boxes);

/// All invariants of contents that lie in this many files, but for the files' lengths: buckets
/// that share no byte of a file, parts that share no element of a bucket, tensors whose parts are
/// each element once. Failures (checkpoint) name the tensors.
base::Status check_contents(const Contents& contents, std::size_t files);

/// All invariants of a manifest, parsed or about to be written. Failures (checkpoint) do not name
/// the manifest.
base::Status check_manifest(const Manifest& manifest);

}  // namespace trireme::checkpoint
