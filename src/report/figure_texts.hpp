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

/// "453/500"; "453" where no end is known, or one before it: a run may be told to end before the
/// step that it has come to.
std::string steps_text(std::int64_t step, std::int64_t planned_steps);

/// "0.249 TFLOP/s": the peak that MFU divides by.
std::string peak_text(double flops);

/// Figures that at least one of the runs has. The texts are printable().
std::vector<FigureText> figure_texts(std::span<const RunView> runs);

}  // namespace trireme::report
