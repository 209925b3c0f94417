// SPDX-License-Identifier: Apache-2.0
#include "figure_texts.hpp"

#include "trireme/base/counted.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/text.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace trireme::report {
namespace {

using base::format;

std::string loss_text(const RunView& run, const Figures& figures) {
  if (std::isnan(figures.loss)) return {};
  const auto count = std::min(Figures::smoothed_steps, run.record.steps.size());
  return format("{} (mean of the last {})", base::fixed_text(figures.loss, 4), count);
}

std::string held_out_text(const RunView&, const Figures& figures) {
  if (std::isnan(figures.held_out_loss)) return {};
  const auto text = base::fixed_text(figures.held_out_loss, 4);
  if (figures.best_held_out_loss >= figures.held_out_loss) return text + " (the best)";
  return format("{} (best {} at step {})", text, base::fixed_text(figures.best_held_out_loss, 4),
                figures.best_step);
}

std::string mfu_text(const RunView&, const Figures& figures) {
  if (std::isnan(figures.mfu)) return {};
  auto text = format("{:.1f} %", figures.mfu * 100);
  if (std::isnan(figures.peak_flops)) return text;
  return text + format(" of {}{}", peak_text(figures.peak_flops),
                       figures.peak_source.empty() ? "" : ", " + figures.peak_source);
}

std::string layout_text(const RunView& run, const Figures&) {
  std::vector<std::string> degrees;
  for (const auto* axis : {"pipeline", "data", "tensor"}) {
    const auto degree = run.value(format("parallel.{}", axis));
    if (degree.empty()) return {};
    degrees.push_back(format("{} {}", axis, degree));
  }
  return format("{}", base::join(degrees, ", "));
}

struct Figure {
  const char* label;
  std::string (*text)(const RunView&, const Figures&);
};

constexpr std::array<Figure, 12> all_figures{{
    {"state", [](const RunView& run, const Figures&) { return std::string(name(run.state)); }},
    {"step",
     [](const RunView&, const Figures& figures) {
       return steps_text(figures.step, figures.planned_steps);
     }},
    {"train loss", loss_text},
    {"held-out loss", held_out_text},
    {"tokens",
     [](const RunView&, const Figures& figures) {
       return std::isnan(figures.tokens) ? std::string{} : base::count_text(figures.tokens);
     }},
    {"epochs of data",
     [](const RunView&, const Figures& figures) {
       return std::isnan(figures.epochs) ? std::string{} : base::factor_text(figures.epochs);
     }},
    {"tok/s, median",
     [](const RunView&, const Figures& figures) {
       return std::isnan(figures.tokens_per_second) ? std::string{}
                                                    : format("{:.0f}", figures.tokens_per_second);
     }},
    {"MFU, median", mfu_text},
    {"time of its steps",
     [](const RunView&, const Figures& figures) {
       return std::isnan(figures.step_seconds) ? std::string{}
                                               : base::duration_text(figures.step_seconds);
     }},
    {"starts", [](const RunView&, const Figures& figures) { return format("{}", figures.starts); }},
    {"parameters",
     [](const RunView&, const Figures& figures) {
       return std::isnan(figures.parameters) ? std::string{} : base::count_text(figures.parameters);
     }},
    {"parallel", layout_text},
}};

}  // namespace

std::string three_digits(double number) {
  return number >= 1000 ? format("{:.0f}", number) : format("{:.3g}", number);
}

std::string steps_text(std::int64_t step, std::int64_t planned_steps) {
  if (planned_steps < std::max<std::int64_t>(step, 1)) return format("{}", step);
  return format("{}/{}", step, planned_steps);
}

std::string peak_text(double flops) {
  return three_digits(flops / 1e12) + " TFLOP/s";
}

std::vector<FigureText> figure_texts(std::span<const RunView> runs) {
  std::vector<Figures> figures;
  for (const auto& run : runs) figures.push_back(figures_of(run));
  std::vector<FigureText> texts;
  for (const auto& figure : all_figures) {
    FigureText text{figure.label, {}};
    bool known = false;
    for (std::size_t at = 0; at < runs.size(); ++at) {
      const auto value = figure.text(runs[at], figures[at]);
      known = known || !value.empty();
      text.values.push_back(value.empty() ? "-" : base::printable(value));
    }
    if (known) texts.push_back(std::move(text));
  }
  return texts;
}

}  // namespace trireme::report
