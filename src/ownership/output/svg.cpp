// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/svg.hpp"

#include "trireme/base/format.hpp"
#include "trireme/ownership/picture.hpp"

#include "ownership/output/rank_content.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace trireme::ownership {
namespace {

using base::format;

constexpr int most_ranks_drawn = 512;
constexpr double left_margin = 64;
constexpr double right_margin = 24;
constexpr double top_margin = 72;
constexpr double plot_height = 240;
constexpr double legend_row = 20;
constexpr double plot_width = 900;

/// By shape, in order: they differ in lightness too, for the commonest colour blindness.
constexpr std::array<const char*, 6> fills = {"#08519c", "#6baed6", "#fd8d3c",
                                              "#fdd0a2", "#31a354", "#c7e9c0"};

/// A coordinate to a hundredth of a pixel.
std::string at(double pixels) {
  return base::number_text(std::round(pixels * 100) / 100);
}

constexpr base::TextStyle title_style{"title", 15, base::TextAnchor::start, true};
constexpr base::TextStyle words_style{"words", 12};
constexpr base::TextStyle scale_style{"scale", 11, base::TextAnchor::end};

class Bars {
 public:
  explicit Bars(const View& view)
      : view_(view),
        plan_(view.choice.chosen.plan),
        shapes_(shapes(view.tensors)),
        parts_(contents(plan_, view.tensors)) {
    ranks_ = std::min(plan_.ranks(), most_ranks_drawn);
    const double sum = std::accumulate(plan_.load.begin(), plan_.load.end(), 0.0);
    mean_ = sum / plan_.ranks();
    most_ = std::max(*std::max_element(plan_.load.begin(), plan_.load.end()), 1.0);
    bar_width_ = plot_width / ranks_;
  }

  std::string document() {
    const double width = left_margin + plot_width + right_margin;
    const double height = top_margin + plot_height + 52 +
                          legend_row * static_cast<double>(std::min(shapes_.size(), fills.size()));
    picture_.text(left_margin, 26, title_style, title());
    picture_.text(left_margin, 46, words_style, subtitle());
    for (int rank = 0; rank < ranks_; ++rank) draw_bar(rank);
    draw_mean_line();
    draw_legend();
    return picture_.document(title(), width, height, style);
  }

 private:
  static constexpr const char* style = R"svg(<style>
.whole { stroke: #fff; stroke-width: 0.5; }
.shared { stroke: #222; stroke-width: 0.6; stroke-dasharray: 2 1; }
.mean { stroke: #222; stroke-width: 1; stroke-dasharray: 6 3; }
</style>
)svg";

  std::string title() const {
    return format("{}: {} on dp {} x tp {}", view_.model, name(plan_.assignment), plan_.data,
                  plan_.tensor);
  }

  std::string subtitle() const {
    auto text = format(
        "load of each rank for one update; largest {:.3f} of the mean, padding "
        "{:.1f} %",
        plan_.max_over_mean(), 100 * plan_.padding());
    if (ranks_ < plan_.ranks()) text += format("; {} more ranks", plan_.ranks() - ranks_);
    return text;
  }

  double y(double flops) const { return top_margin + plot_height * (1 - flops / most_); }

  void draw_bar(int rank) {
    double flops = 0;
    for (const auto& part : parts_[static_cast<std::size_t>(rank)]) {
      const auto& tensor = view_.tensors[part.tensor];
      picture_.add(format(
          "<g><title>rank {}: {}{}, {:.4g} GFLOP</title><rect x=\"{}\" y=\"{}\" width=\"{}\" "
          "height=\"{}\" fill=\"{}\" class=\"{}\"/></g>\n",
          rank, base::xml_escaped(tensor.name), part.is_shared ? ", shared" : "", part.flops / 1e9,
          at(left_margin + rank * bar_width_), at(y(flops + part.flops)),
          at(bar_width_ > 4 ? bar_width_ - 1 : bar_width_), at(plot_height * part.flops / most_),
          fill(tensor.shape), part.is_shared ? "shared" : "whole"));
      flops += part.flops;
    }
  }

  const char* fill(const MatrixShape& shape) const {
    const auto found = std::find_if(shapes_.begin(), shapes_.end(),
                                    [&](const ShapeCount& each) { return each.shape == shape; });
    const auto index = static_cast<std::size_t>(found - shapes_.begin());
    return fills[std::min(index, fills.size() - 1)];
  }

  void draw_mean_line() {
    const double bottom = top_margin + plot_height;
    picture_.add(format("<path d=\"M{0} {1}H{2}\" class=\"mean\"/>\n", at(left_margin),
                        at(y(mean_)), at(left_margin + plot_width)));
    // Above the zero, however small the mean is beside the largest.
    const double least_distance = scale_style.size + 2;
    picture_.text(left_margin - 6, std::min(y(mean_), bottom - least_distance) + 4, scale_style,
                  "mean");
    picture_.text(left_margin - 6, bottom + 4, scale_style, "0");
    picture_.text(
        left_margin, bottom + 18, words_style,
        format("ranks 0 to {}; parts of shared matrices have dashed borders", ranks_ - 1));
  }

  void draw_legend() {
    const double top = top_margin + plot_height + 36;
    for (std::size_t index = 0; index < std::min(shapes_.size(), fills.size()); ++index) {
      const double row = top + legend_row * static_cast<double>(index);
      picture_.add(format("<rect x=\"{}\" y=\"{}\" width=\"16\" height=\"12\" fill=\"{}\"/>\n",
                          at(left_margin), at(row - 10), fills[index]));
      const bool others = index + 1 == fills.size() && shapes_.size() > fills.size();
      picture_.text(left_margin + 24, row, words_style,
                    format("{} matrices {}{}, {:.4g} GFLOP each", shapes_[index].count,
                           shape_text(shapes_[index].shape), others ? " and smaller" : "",
                           shapes_[index].flops / 1e9));
    }
  }

  base::SvgPicture picture_;
  const View& view_;
  const Plan& plan_;
  std::vector<ShapeCount> shapes_;
  std::vector<std::vector<OwnedPart>> parts_;
  int ranks_ = 0;
  double mean_ = 0;
  double most_ = 1;
  double bar_width_ = 1;
};

}  // namespace

std::string svg(const View& view) {
  return Bars(view).document();
}

}  // namespace trireme::ownership
