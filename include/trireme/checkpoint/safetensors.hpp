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

namespace trireme::checkpoint {

/// Element types of Hugging Face's format that this reader converts.
enum class SafetensorsType { f32, f16, bf16 };
const char* name(SafetensorsType type);  ///< "F32", "F16", "BF16"

struct SafetensorsEntry {
  std::string name;
  SafetensorsType dtype;
  layout::Shape shape;
};

/// A folder of safetensors files (model.safetensors, or the shards that
/// model.safetensors.index.json names), or one such file. Headers are read and checked at once,
/// elements when asked for.
class SafetensorsFolder {
 public:
  /// Failures (checkpoint): no such files, header above 100 MB or not JSON, offsets outside the
  /// file or overlapping or of another length than the shape's, names twice, shards missing from
  /// the folder or outside it, and types other than F32, F16, BF16 (named).
  static base::Result<SafetensorsFolder> open(const std::filesystem::path& path);

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
  /// if it were [out, in]. Failures: no such tensor (with the nearest name), box outside the
  /// shape, other element count than the destination's, read errors.
  base::Status read_box(std::string_view name, const layout::Box& box,
                        const device::Tensor& destination,
                        Orientation orientation = Orientation::as_stored) const;

 private:
  struct State;
  explicit SafetensorsFolder(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// One tensor to be written, in rows: dimension 0 is cut, so that no whole model need be in
/// memory.
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
  /// How many bytes are asked of `fill` at once, at most (but one element).
  std::uint64_t piece_bytes = std::uint64_t{16} << 20;
  std::map<std::string, std::string> metadata = {{"format", "pt"}};
};

/// Writes model.safetensors, or model-00001-of-0000N.safetensors … and
/// model.safetensors.index.json, durably, in the order given. Throws Error (checkpoint).
void write_safetensors(const std::filesystem::path& folder,
                       const std::vector<SafetensorsOutput>& tensors,
                       const SafetensorsWriteOptions& options = {});

/// One file with everything, as `trireme probe` writes.
void write_safetensors_file(const std::filesystem::path& file,
                            const std::vector<SafetensorsOutput>& tensors,
                            const SafetensorsWriteOptions& options = {});

}  // namespace trireme::checkpoint
