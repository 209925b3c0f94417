// SPDX-License-Identifier: Apache-2.0
#include "trireme/device/data_sheet.hpp"

#include <algorithm>
#include <array>

namespace trireme::device {
namespace {

struct Row {
  /// Words that the name must all hold; the first row that fits counts. An empty one always fits.
  std::array<std::string_view, 2> words;
  double bf16 = 0;
  /// Peak without TF32.
  double fp32 = 0;
};

/// Figures of NVIDIA's data sheets, without sparsity. scripts/python/gpu_check has the same words
/// and bf16 figures; a test compares.
constexpr std::array rows{
    Row{{"GB200", ""}, 2500e12, 80e12},     Row{{"B200", ""}, 2250e12, 75e12},
    Row{{"H200", "NVL"}, 835.5e12, 60e12},  Row{{"H200", ""}, 989.4e12, 66.9e12},
    Row{{"GH200", ""}, 989.4e12, 66.9e12},  Row{{"H100", "PCIe"}, 756e12, 51.2e12},
    Row{{"H100", "NVL"}, 835.5e12, 60e12},  Row{{"H100", ""}, 989.4e12, 66.9e12},
    Row{{"H800", "PCIe"}, 756e12, 51.2e12}, Row{{"H800", ""}, 989.4e12, 66.9e12},
    Row{{"H20", ""}, 148e12, 44e12},        Row{{"A100", ""}, 312e12, 19.5e12},
    Row{{"A800", ""}, 312e12, 19.5e12},     Row{{"A30", ""}, 165e12, 10.3e12},
    Row{{"L40S", ""}, 362e12, 91.6e12},     Row{{"L40", ""}, 181e12, 90.5e12},
    Row{{"L4", ""}, 121e12, 30.3e12},       Row{{"A40", ""}, 149.7e12, 37.4e12},
    Row{{"A10", ""}, 125e12, 31.2e12},
};

/// True if `word` stands in the name between blanks or dashes: A10 is no A100.
bool has_word(std::string_view name, std::string_view word) {
  constexpr std::string_view between = " -";
  while (!name.empty()) {
    const auto end = std::min(name.find_first_of(between), name.size());
    if (name.substr(0, end) == word) return true;
    name.remove_prefix(std::min(end + 1, name.size()));
  }
  return word.empty();
}

}  // namespace

std::optional<double> data_sheet_flops(std::string_view gpu, DType dtype) {
  const auto* const row = std::find_if(rows.begin(), rows.end(), [&](const Row& each) {
    return has_word(gpu, each.words[0]) && has_word(gpu, each.words[1]);
  });
  if (row == rows.end()) return std::nullopt;
  return dtype == DType::bf16 ? row->bf16 : row->fp32;
}

}  // namespace trireme::device
