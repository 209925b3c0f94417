// SPDX-License-Identifier: Apache-2.0
// trireme checkpoint diff
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/json_text.hpp"
#include "trireme/checkpoint/compare.hpp"
#include "trireme/checkpoint/folders.hpp"

#include "apps/cli/commands.hpp"

#include <algorithm>
#include <memory>

namespace trireme::apps {
namespace {

using base::format;
using base::Json;
using checkpoint::Comparison;
using checkpoint::TensorDifference;

struct Options {
  std::string first;
  std::string second;
  bool json = false;
  bool must_be_equal = false;
};

Json json_of(const Comparison& comparison) {
  auto tensors = Json::array();
  for (const auto& tensor : comparison.tensors) {
    Json line{{"name", tensor.name}, {"difference", tensor.kind_text()}};
    if (tensor.kind == TensorDifference::Kind::values) {
      line["elements"] = tensor.elements;
      line["differing"] = tensor.differing;
      line["largest"] = tensor.largest;
      line["relative"] = tensor.relative;
    }
    tensors.push_back(std::move(line));
  }
  auto facts = Json::object();
  for (const auto& fact : comparison.facts) {
    facts[fact[0].get<std::string>()] = {fact[1], fact[2]};
  }
  return {{"equal", comparison.tensors.empty()},
          {"common_tensors", comparison.common},
          {"tensors", std::move(tensors)},
          {"facts", std::move(facts)},
          {"settings",
           {{"only_first", comparison.only_first_settings},
            {"only_second", comparison.only_second_settings}}}};
}

std::string text_of(const TensorDifference& tensor, std::size_t width) {
  if (tensor.kind != TensorDifference::Kind::values) {
    return format("{:<{}}  {}\n", tensor.name, width, tensor.kind_text());
  }
  return format("{:<{}}  {:>12} of {:>12} elements, largest {:.3e}, relative {:.3e}\n", tensor.name,
                width, tensor.differing, tensor.elements, tensor.largest, tensor.relative);
}

std::string text_of(const Comparison& comparison) {
  std::string text;
  for (const auto& fact : comparison.facts) {
    text += format("{}: {} | {}\n", fact[0].get<std::string>(), base::json_text(fact[1]),
                   base::json_text(fact[2]));
  }
  for (const auto& line : comparison.only_first_settings) text += format("< {}\n", line);
  for (const auto& line : comparison.only_second_settings) text += format("> {}\n", line);
  std::size_t width = 0;
  for (const auto& tensor : comparison.tensors) width = std::max(width, tensor.name.size());
  for (const auto& tensor : comparison.tensors) text += text_of(tensor, width);
  if (comparison.tensors.empty()) {
    return text + format("all {} tensors are the same, bit by bit\n", comparison.common);
  }
  return text + format("{} tensors differ, of {} that both have\n", comparison.tensors.size(),
                       comparison.common);
}

Action prepare_diff(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("FIRST", options->first, "Step folder, or run folder (its newest step)")
      ->required()
      ->type_name("PATH");
  app.add_option("SECOND", options->second, "The other")->required()->type_name("PATH");
  app.add_flag("--json", options->json, "One JSON object");
  app.add_flag("--must-be-equal", options->must_be_equal,
               "Exit code 6 unless all tensors have the same bits");
  return [options](Context& context) {
    const auto first = base::value_or_throw(checkpoint::find_step(options->first));
    const auto second = base::value_or_throw(checkpoint::find_step(options->second));
    const auto comparison = checkpoint::compare(first.path, second.path);
    context.out.write(options->json ? base::json_text(json_of(comparison)) + "\n"
                                    : text_of(comparison));
    const bool good = !options->must_be_equal || comparison.tensors.empty();
    return good ? base::ExitCode::done : base::ExitCode::checkpoint;
  };
}

}  // namespace

Command checkpoint_diff_command() {
  return {.name = "diff",
          .summary = "Compares two steps: tensors bit by bit, configuration and progress",
          .details =
              "Layouts may differ: tensors are compared whole. For each that differs: how "
              "many elements, the largest difference, and the norm of the difference over "
              "that of the first.\n"
              "Example: trireme checkpoint diff runs/a runs/b --must-be-equal",
          .prepare = prepare_diff};
}

}  // namespace trireme::apps
