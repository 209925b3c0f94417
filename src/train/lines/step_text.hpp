// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/curve_text.hpp"
#include "trireme/train/report.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace trireme::train {

/// Figures of a step that people read.
struct StepFigures {
  const StepRecord& record;
  std::int64_t steps = 0;  ///< of the whole run
  double tokens_per_second = 0;
  double mfu = 0;           ///< 0 to 1
  double seconds_left = 0;  ///< of the run
  base::Trend loss = base::Trend::unknown;
};

/// How a terminal shows it.
struct Look {
  std::size_t columns = 100;
  bool colour = false;
  base::Glyphs glyphs = base::Glyphs::unicode;
};

/// "step    812/4000  loss 3.2711  20514 tok/s  mfu 41.2 %  left 12 min 3 s": for files.
std::string plain_step_line(const StepFigures& figures);
/// The same with gradient norm, learning rate, exposed communication and bubble.
std::string long_step_line(const StepFigures& figures);
/// The plain line with the loss's trend, in at most so many columns: what does not fit is left out,
/// the least important first.
std::string terminal_step_line(const StepFigures& figures, const Look& look);
/// Status line below them: a bar, the curve of the losses given, speed and time left.
std::string progress_line(const StepFigures& figures, std::span<const double> losses,
                          const Look& look);

/// "20514", "1.23M": tokens a second.
std::string rate_text(double tokens_per_second);

}  // namespace trireme::train
