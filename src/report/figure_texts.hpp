// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/report/run_view.hpp"

namespace trireme::report {

/// A figure of several runs, as people read it.
struct FigureText {
  std::string label;
  std::vector<std::string> values;  ///< [run]
};

/// "0.598", "24.1", "2270": three digits at least, and no power of ten.
std::string three_digits(double number);

/// "0.249 TFLOP/s": the peak that MFU divides by.
std::string peak_text(double flops);

/// Figures that at least one of the runs has. The texts are printable().
std::vector<FigureText> figure_texts(std::span<const RunView> runs);

}  // namespace trireme::report
