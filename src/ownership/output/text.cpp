// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/format.hpp"
#include "trireme/ownership/picture.hpp"

#include "ownership/output/rank_content.hpp"

#include <algorithm>
#include <numeric>
#include <sstream>

namespace trireme::ownership {
namespace {

using base::format;

constexpr std::size_t columns = 100;
constexpr std::size_t label_width = 12;

/// "label       words", broken at spaces.
std::string paragraph(const std::string& label, const std::string& words) {
  std::string text = format("{:<{}}", label, label_width);
  std::size_t used = label_width;
  bool first = true;
  std::istringstream stream(words);
  for (std::string word; stream >> word; first = false) {
    if (!first && used + 1 + word.size() > columns) {
      text += '\n';
      text.append(label_width, ' ');
      used = label_width;
      first = true;
    }
    if (!first) text += ' ';
    text += word;
    used += word.size() + (first ? 0 : 1);
  }
  return text + "\n";
}

std::string flops_text(double flops) {
  if (flops >= 1e15) return format("{:.2f} PFLOP", flops / 1e15);
  if (flops >= 1e12) return format("{:.2f} TFLOP", flops / 1e12);
  if (flops >= 1e9) return format("{:.2f} GFLOP", flops / 1e9);
  return format("{:.3g} MFLOP", flops / 1e6);
}

std::string bytes_text(double bytes) {
  return base::bytes_text(static_cast<std::uint64_t>(bytes));
}

std::string head(const View& view) {
  const auto& plan = view.choice.chosen.plan;
  double matrix_parameters = 0;
  for (const auto& owner : plan.matrices) {
    const auto& shape = view.tensors[owner.tensor].shape;
    matrix_parameters += static_cast<double>(shape.rows) * static_cast<double>(shape.columns);
  }
  auto text = paragraph(
      "model", format("{}; {} matrices hold {:.1f} % of {:.1f} M parameters, "
                      "AdamW keeps the others",
                      view.model, plan.matrices.size(),
                      100 * matrix_parameters / view.work.parameters, view.work.parameters / 1e6));
  text += paragraph("optimizer", format("{} ({})", view.optimizer, view.optimizer_origin));
  text += paragraph("ranks", format("{} = data parallel {} x tensor parallel {}", plan.ranks(),
                                    plan.data, plan.tensor));
  return text + paragraph("assignment", view.choice.reason);
}

std::string totals(const View& view) {
  const auto& plan = view.choice.chosen.plan;
  const double sum = std::accumulate(plan.load.begin(), plan.load.end(), 0.0);
  const auto most = std::max_element(plan.load.begin(), plan.load.end());
  const auto shared = std::count_if(plan.matrices.begin(), plan.matrices.end(),
                                    [](const MatrixOwner& owner) { return owner.is_shared(); });
  auto text = paragraph(
      "load", format("{} an update; of a rank {} in the mean, {} at most (rank {}): {:.3f} of the "
                     "mean",
                     flops_text(sum), flops_text(sum / plan.ranks()), flops_text(*most),
                     most - plan.load.begin(), plan.max_over_mean()));
  text += paragraph("shards", format("{} bucket{}, padding {:.2f} %; {} matri{} shared",
                                     plan.buckets.size(), plan.buckets.size() == 1 ? "" : "s",
                                     100 * plan.padding(), shared, shared == 1 ? "x" : "ces"));
  const int bytes = view.work.parameter_bytes;
  return text +
         paragraph("bytes", format("{} sent by all ranks along dp in a step (AdamW {}), {} to "
                                   "owners and between sharers",
                                   bytes_text(bytes_on_wire(plan, bytes)),
                                   bytes_text(bytes_on_wire(view.adamw.plan, bytes)),
                                   bytes_text(exchange_bytes(plan, view.tensors, bytes))));
}

std::string shapes_table(const View& view) {
  const auto line = [&](const std::string& shape, const std::string& matrices,
                        const std::string& form, const std::string& update) {
    return format("{:<18} {:>8}  ", shape, matrices) +
           (view.newton_schulz_steps ? format("{:<14} ", form) : "") + format("{:>14}\n", update);
  };
  auto text = line("shape", "matrices", "form", "an update");
  for (const auto& [shape, flops, count] : shapes(view.tensors)) {
    const auto steps = view.newton_schulz_steps.value_or(default_newton_schulz_steps);
    text += line(shape_text(shape), format("{}", count),
                 name(cheapest_newton_schulz_form(shape, steps)), flops_text(flops));
  }
  return text;
}

std::string price_line(const std::string& plan, const StepPrice& price, double balance) {
  const auto ms = [](double seconds) { return format(" {:>9.3f}", 1e3 * seconds); };
  return format("{:<12}", plan) + ms(price.reduce) + ms(price.exchange) + ms(price.compute) +
         ms(price.launch) + ms(price.gather) + ms(price.total()) +
         (balance > 0 ? format(" {:>9.3f}", balance) : "") + "\n";
}

std::string prices_table(const View& view) {
  auto text = format("{:<12} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}\n", "ms of a step", "reduce",
                     "exchange", "compute", "launch", "gather", "total", "max/mean");
  for (const auto each : all_assignments) {
    const auto line = [&](const PricedPlan& priced, const char* mark) {
      if (priced.plan.assignment != each) return;
      text += price_line(std::string(name(each)) + mark, priced.price, priced.plan.max_over_mean());
    };
    line(view.choice.chosen, " *");
    for (const auto& other : view.choice.others) line(other, "");
  }
  text += price_line("AdamW", view.adamw.price, 0);
  const double training = view.work.training_seconds(view.machine, view.choice.chosen.plan.ranks());
  return text + "\n" +
         paragraph("predicted",
                   format("beside {:.4g} ms of forward and backward over {:.0f} "
                          "tokens in {}; from counted FLOPs and bytes and {}; ragged "
                          "shards as fast as equal ones",
                          1e3 * training, view.work.tokens,
                          view.work.micro_batches == 1
                              ? "one micro-batch"
                              : format("{:.0f} micro-batches", view.work.micro_batches),
                          view.machine.text()));
}

/// "3.attention.q" of "layers.3.attention.q.weight"; a shared one with its columns.
std::string short_name(const OwnedPart& part, const OwnedTensor& tensor) {
  auto text = tensor.name;
  if (text.starts_with("layers.")) text.erase(0, 7);
  if (text.ends_with(".weight")) text.erase(text.size() - 7);
  if (!part.is_shared) return text;
  if (part.begin == part.end) return text + "[square]";
  return text + format("[{}:{}]", part.begin, part.end);
}

std::string owners_table(const View& view, int most_ranks) {
  const auto& plan = view.choice.chosen.plan;
  const auto ranks = contents(plan, view.tensors);
  const double mean =
      std::accumulate(plan.load.begin(), plan.load.end(), 0.0) / static_cast<double>(plan.ranks());
  auto text = format("{:>6} {:>9}  {}\n", "rank", "of mean", "owns");
  const auto shown = std::min(plan.ranks(), most_ranks);
  for (int rank = 0; rank < shown; ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    auto line = format("{:>6} {:>7.1f} %  ", rank, mean > 0 ? 100 * plan.load[at] / mean : 0.0);
    std::size_t told = 0;
    for (const auto& part : ranks[at]) {
      const auto next = short_name(part, view.tensors[part.tensor]);
      const auto more = format(" + {} more", ranks[at].size() - told);
      if (line.size() + 1 + next.size() + more.size() > columns) {
        line += more;
        break;
      }
      line += (told++ == 0 ? "" : " ") + next;
    }
    text += line + "\n";
  }
  if (shown < plan.ranks()) {
    text += format("({} more ranks; --json and --svg have them)\n", plan.ranks() - shown);
  }
  return text;
}

}  // namespace

std::string text(const View& view, int most_ranks) {
  return head(view) + totals(view) + "\n" + shapes_table(view) + "\n" + prices_table(view) + "\n" +
         owners_table(view, most_ranks);
}

}  // namespace trireme::ownership
