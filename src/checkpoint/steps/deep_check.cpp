// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/steps/deep_check.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"

#include "checkpoint/hdf5/hdf5.hpp"
#include "checkpoint/load/pieces.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

namespace trireme::checkpoint {
namespace {

constexpr const char* master_name = "master.h5";

/// Values whose exponent has all its bits, of `bits`-wide words.
template <typename Word>
std::int64_t count_words_not_finite(std::span<const std::byte> values, Word exponent) {
  std::int64_t count = 0;
  for (std::size_t at = 0; at < values.size(); at += sizeof(Word)) {
    Word word;
    std::memcpy(&word, &values[at], sizeof word);
    if ((word & exponent) == exponent) ++count;
  }
  return count;
}

std::int64_t count_not_finite(device::DType dtype, std::span<const std::byte> values) {
  switch (dtype) {
    case device::DType::f32:
      return count_words_not_finite<std::uint32_t>(values, 0x7F800000);
    case device::DType::bf16:
      return count_words_not_finite<std::uint16_t>(values, 0x7F80);
    case device::DType::i32:
    case device::DType::e4m3:
      break;
  }
  return 0;
}

/// Looks at one tensor after the other.
class DeepCheck {
 public:
  DeepCheck(const std::filesystem::path& step_folder, const Manifest& manifest,
            VerifyReport& report)
      : folder_(step_folder),
        files_(manifest.files_in(step_folder)),
        manifest_(manifest),
        report_(report) {
    const auto& files = manifest.files;
    if (std::any_of(files.begin(), files.end(),
                    [](const StoredFile& file) { return file.name == master_name; })) {
      master_ = hdf5::open_file(files_ / master_name);
    }
  }

  void look_at(const StoredTensor& tensor) {
    std::int64_t not_finite = 0;
    std::optional<layout::Box> other;
    std::optional<hdf5::Dataset> shown;
    if (master_) shown = hdf5::open_dataset(*master_, tensor.name);
    for (const auto& box : pieces_of(tensor.shape)) {
      const auto values = load_piece(folder_, manifest_, tensor, box, loaded_);
      report_.checked_bytes += values.size();
      not_finite += count_not_finite(tensor.dtype, values);
      if (!shown) continue;
      read_.resize(values.size());
      hdf5::read_values(*shown, tensor.dtype, tensor.shape, box, read_);
      if (!other && !std::equal(values.begin(), values.end(), read_.begin())) other = box;
    }
    if (not_finite > 0) {
      add(tensor, "manifest.json",
          base::format("{} of the {} values of tensor '{}' in '{}' are not finite (a run that goes "
                       "on from them fails); use another step",
                       not_finite, layout::element_count(tensor.shape), tensor.name,
                       folder_.string()));
    }
    if (other) {
      add(tensor, master_name,
          base::format("'{}' shows other values of tensor '{}' than the shards have, in {} (a load "
                       "is right, whoever reads by HDF5 is wrong); please report this",
                       (files_ / master_name).string(), tensor.name, layout::text(*other)));
    }
  }

 private:
  void add(const StoredTensor& tensor, const char* file, std::string text) {
    report_.damages.push_back({file, 0, 0, {tensor.name}, std::move(text)});
  }

  const std::filesystem::path& folder_;
  std::filesystem::path files_;
  const Manifest& manifest_;
  VerifyReport& report_;
  std::optional<hdf5::File> master_;
  std::vector<std::byte> loaded_;
  std::vector<std::byte> read_;
};

}  // namespace

void deep_check(const std::filesystem::path& step_folder, const Manifest& manifest,
                VerifyReport& report) {
  try {
    DeepCheck check(step_folder, manifest, report);
    for (const auto& tensor : manifest.contents.tensors) check.look_at(tensor);
  } catch (const base::Error& error) {
    report.damages.push_back({"manifest.json", 0, 0, {}, error.what()});
  }
}

}  // namespace trireme::checkpoint
