#include "trireme/base/format.hpp"
#include "trireme/layout/schedule.hpp"

#include "layout/even_counts.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>

namespace trireme::layout {
namespace {

/// A model of more layers than this is a mistyped number.
constexpr int max_positions = 1 << 20;

std::string positions_text(int stages, int virtual_stages) {
  if (virtual_stages == 1) return base::format("parallel.pipeline = {}", stages);
  return base::format("parallel.pipeline x parallel.virtual_stages = {} x {} = {}", stages,
                      virtual_stages, stages * virtual_stages);
}

base::Status check_even(int layers, int stages, int virtual_stages) {
  if (layers >= stages * virtual_stages) return {};
  std::vector<int> choices;
  for (int choice = 1; choice <= layers / virtual_stages && choice <= 64; ++choice) {
    if (layers % (choice * virtual_stages) == 0) choices.push_back(choice);
  }
  return base::usage_failure(base::format(
      "{} is more than model.num_hidden_layers = {} (each position holds at least one layer); try "
      "parallel.pipeline = {}",
      positions_text(stages, virtual_stages), layers,
      choices.empty() ? std::string("1 without virtual stages")
                      : base::format("{}", base::join(choices, ", "))));
}

base::Status check_given(int layers, int stages, int virtual_stages,
                         const std::vector<int>& given) {
  const int positions = stages * virtual_stages;
  const std::string even =
      layers < positions ? std::string("fewer stages")
                         : base::format("{}", base::join(even_counts(layers, positions), ","));
  if (given.size() != static_cast<std::size_t>(positions)) {
    return base::usage_failure(base::format(
        "parallel.stage_layers has {} counts, {} wants {} (one for each position of the model, in "
        "the model's order); try {}",
        given.size(), positions_text(stages, virtual_stages), positions, even));
  }
  for (std::size_t at = 0; at < given.size(); ++at) {
    const bool end = at == 0 || at + 1 == given.size();
    if (given[at] < 0 || (given[at] == 0 && !end)) {
      return base::usage_failure(base::format(
          "parallel.stage_layers holds {} at position {} (only the first and the last position may "
          "go without layers: they have the embedding and the head); try {}",
          given[at], at, even));
    }
  }
  const std::int64_t sum = std::accumulate(given.begin(), given.end(), std::int64_t{0});
  if (sum != layers) {
    return base::usage_failure(base::format(
        "parallel.stage_layers = {} sums to {}, not to model.num_hidden_layers = {} (every layer "
        "stands on exactly one stage); try {}",
        base::join(given, ","), sum, layers, even));
  }
  return {};
}

}  // namespace

std::vector<int> even_counts(int layers, int positions) {
  std::vector<int> counts(static_cast<std::size_t>(positions), layers / positions);
  const int remainder = layers % positions;
  const auto first = counts.begin() + (positions - remainder) / 2;
  std::for_each(first, first + remainder, [](int& count) { ++count; });
  return counts;
}

base::Result<std::vector<std::vector<LayerRange>>> assign_layers(int layers, int stages,
                                                                 int virtual_stages,
                                                                 const std::vector<int>& given) {
  if (layers < 1 || stages < 1 || virtual_stages < 1 ||
      std::int64_t{stages} * virtual_stages > max_positions) {
    return base::usage_failure(base::format(
        "model.num_hidden_layers = {}, parallel.pipeline = {} and parallel.virtual_stages = {} "
        "leave nothing to assign (layers and positions are at least 1, positions at most {}); "
        "check these keys",
        layers, stages, virtual_stages, max_positions));
  }
  const base::Status status = given.empty() ? check_even(layers, stages, virtual_stages)
                                            : check_given(layers, stages, virtual_stages, given);
  if (!status) return status.failure();

  const int positions = stages * virtual_stages;
  const std::vector<int> counts = given.empty() ? even_counts(layers, positions) : given;
  std::vector<std::vector<LayerRange>> result(static_cast<std::size_t>(stages));
  int begin = 0;
  for (int position = 0; position < positions; ++position) {
    const int end = begin + counts[static_cast<std::size_t>(position)];
    result[static_cast<std::size_t>(position % stages)].push_back({begin, end});
    begin = end;
  }
  return result;
}

}  // namespace trireme::layout
