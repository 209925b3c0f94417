// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"
#include "trireme/device/tensor.hpp"
#include "trireme/layout/box.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace trireme::huggingface {

/// Names of a model's weights in a folder: one file, or the index of several. Where both are there
/// the one file is read.
inline constexpr const char* single_safetensors = "model.safetensors";
inline constexpr const char* safetensors_index = "model.safetensors.index.json";

/// Element types of Hugging Face's format; only those of `other` kind (integers, F64, F8…) are
/// listed but not read.
enum class SafetensorsType { f32, f16, bf16, other };

struct SafetensorsEntry {
  std::string name;
  SafetensorsType dtype;
  std::string dtype_text;  ///< as the file says: "F32", "I64"…
  layout::Shape shape;     ///< empty for a scalar
};

/// Folder of safetensors files (model.safetensors, else the shards that
/// model.safetensors.index.json names), or one such file. Headers are read and checked at once,
/// elements on demand.
class SafetensorsFolder {
 public:
  /// Failures (checkpoint): no such files; a header above 100 MB or not JSON; types that the format
  /// does not define; ranges that leave the file, overlap, leave gaps or have another length than
  /// the shape's; shards outside the folder; a tensor that the index names but its shard lacks.
  static base::Result<SafetensorsFolder> open(const std::filesystem::path& path);

  SafetensorsFolder(const SafetensorsFolder&) = delete;
  SafetensorsFolder& operator=(const SafetensorsFolder&) = delete;
  SafetensorsFolder(SafetensorsFolder&&) noexcept;
  SafetensorsFolder& operator=(SafetensorsFolder&&) noexcept;
  ~SafetensorsFolder();

  /// Ascending by name.
  const std::vector<SafetensorsEntry>& tensors() const;
  /// Null when there is none of this name.
  const SafetensorsEntry* find(std::string_view name) const;
  /// The "__metadata__" of all files together.
  const std::map<std::string, std::string>& metadata() const;

  enum class Orientation { as_stored, transposed };
  /// Elements of `box`, converted to the destination's type (f32 or bf16). `box` is given in the
  /// destination's orientation: with Orientation::transposed a stored [in, out] matrix is read as
  /// if it were [out, in]. Failures (checkpoint): no such tensor (with the nearest name), a type
  /// that is not read, a box outside the shape or that the destination does not hold, a file that
  /// cannot be read. Threads may call it at once.
  base::Status read_box(std::string_view name, const layout::Box& box,
                        const device::Tensor& destination,
                        Orientation orientation = Orientation::as_stored) const;

 private:
  struct State;
  explicit SafetensorsFolder(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Tensor to be written, produced piece by piece so that no whole model need be in memory.
struct SafetensorsOutput {
  std::string name;
  device::DType dtype;  ///< f32 or bf16
  layout::Shape shape;  ///< zero to four dimensions
  /// Fills `part` (contiguous) with elements [begin, end) of the tensor in row-major order.
  std::function<void(std::int64_t begin, std::int64_t end, const device::Tensor& part)> fill;
};

struct SafetensorsWriteOptions {
  /// Tensors go into further files once a file holds this many bytes of them.
  std::uint64_t max_shard_bytes = 5'000'000'000;
  /// Largest number of bytes of one call of `fill` (but at least one element).
  std::uint64_t piece_bytes = std::uint64_t{16} << 20;
  std::map<std::string, std::string> metadata = {{"format", "pt"}};
};

/// Writes model.safetensors, or model-00001-of-0000N.safetensors … and
/// model.safetensors.index.json, durably. Tensors go to files in the order given; inside a file
/// they stand as Hugging Face's own library puts them (wider types first, then by name). A folder
/// that holds weights already is refused, lest two models mix. Throws Error (checkpoint).
void write_safetensors(const std::filesystem::path& folder,
                       const std::vector<SafetensorsOutput>& tensors,
                       const SafetensorsWriteOptions& options = {});

/// Writes one file with all tensors, as `trireme probe` does; replaces an older one atomically.
void write_safetensors_file(const std::filesystem::path& file,
                            const std::vector<SafetensorsOutput>& tensors,
                            const SafetensorsWriteOptions& options = {});

}  // namespace trireme::huggingface
