// SPDX-License-Identifier: Apache-2.0
#include "trireme/plan/search.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/engine/from_config.hpp"

#include "reasons.hpp"
#include "refusals.hpp"
#include "searcher.hpp"

#include <algorithm>
#include <utility>

namespace trireme::plan {
namespace {

using base::format;
using Filter = Searcher::Filter;

/// The same question of an arrangement and of a layout.
Filter by_degrees(std::function<bool(const LayoutChoice&)> matches) {
  Filter filter;
  filter.arrangement = matches;
  filter.layout = std::move(matches);
  return filter;
}

Filter all_layouts() {
  return by_degrees([](const LayoutChoice&) { return true; });
}

/// Layouts that differ from one in at most so many settings.
Filter near(const LayoutChoice& from, int settings) {
  return {[=](const LayoutChoice& choice) {
            auto alike = choice;
            alike.recompute = from.recompute;
            return settings_changed(from, alike) <= settings;
          },
          [=](const LayoutChoice& choice) { return settings_changed(from, choice) <= settings; }};
}

struct KnownLayout {
  std::string name;
  Filter filter;
  /// Degrees of one of them, of which a rule speaks that allows none.
  int tensor = 1;
  int pipeline = 1;
};

/// Layouts that people try before they search.
std::vector<KnownLayout> known_layouts(const predict::Machine& machine) {
  const auto one_stage = [](int tensor) {
    return by_degrees([tensor](const LayoutChoice& layout) {
      return layout.tensor == tensor && layout.pipeline == 1;
    });
  };
  const auto many_stages = [](int tensor) {
    return by_degrees([tensor](const LayoutChoice& layout) {
      return layout.tensor == tensor && layout.pipeline > 1;
    });
  };
  std::vector<KnownLayout> known{{"data parallel alone", one_stage(1)},
                                 {"data and pipeline parallel", many_stages(1), 1, 2}};
  const int node = machine.node.gpus;
  if (node <= 1) {
    known.push_back({"tensor and data parallel", one_stage(2), 2});
    return known;
  }
  known.push_back({"tensor parallel in a node, data parallel over nodes", one_stage(node), node});
  known.push_back({"tensor parallel in a node, pipeline over nodes", many_stages(node), node, 2});
  known.push_back({"tensor parallel over nodes",
                   by_degrees([node](const LayoutChoice& layout) { return layout.tensor > node; }),
                   2 * node});
  return known;
}

/// Layouts with their sentences.
class Judge {
 public:
  Judge(Searcher& searcher, const SearchRequest& request, const Simulated& best)
      : searcher_(searcher), request_(request), shares_(searcher.machine()), best_(best) {
    explained_best_ = explained(best);
  }

  JudgedLayout judged(const Simulated& layout) {
    auto judged = described(layout.choice);
    judged.step = layout.step;
    if (searcher_.machine().site.node_hour > 0) {
      judged.cost = cost_of_step(searcher_.machine(), layout.choice.ranks,
                                 predict::seconds_of(layout.step.total()));
    }
    if (has_carbon(searcher_.machine())) {
      judged.kg_co2 =
          carbon_of_step(searcher_.machine(), layout.choice.ranks, seconds_of(layout.step));
    }
    judged.lost_because = sentence(layout);
    return judged;
  }

  /// The best of some layouts, or one that needs little memory where none fits; nothing where no
  /// rule allows any.
  std::optional<JudgedLayout> best_of(const Filter& filter, std::string name) {
    const auto found = searcher_.best(filter, 1, 0);
    if (!found.empty()) {
      auto result = judged(found.front());
      result.name = std::move(name);
      return result;
    }
    const auto misfit = searcher_.smallest(filter);
    if (!misfit) return std::nullopt;
    auto result = described(misfit->choice);
    result.name = std::move(name);
    result.lost_because = why_without_room(*misfit, change_that_fits(misfit->choice));
    return result;
  }

 private:
  JudgedLayout described(const LayoutChoice& choice) {
    JudgedLayout judged;
    judged.layout = choice;
    judged.memory_bytes = searcher_.memory_by_stage(choice);
    return judged;
  }

  std::optional<LayoutChoice> change_that_fits(const LayoutChoice& choice) {
    for (const int settings : {1, 2}) {
      const auto found = searcher_.best(near(choice, settings), 1, 0);
      if (!found.empty()) return found.front().choice;
    }
    return std::nullopt;
  }

  Explained explained(const Simulated& layout) {
    auto workload = searcher_.workload(layout.choice);
    const double share = shares_.product_share(workload);
    return {layout.choice, std::move(workload), layout.step, share};
  }

  std::string sentence(const Simulated& layout) {
    if (layout.choice == best_.choice) return {};
    const auto slower = why_slower(explained(layout), explained_best_, searcher_.machine());
    if (layout.score <= best_.score.with_margin(request_.margin)) {
      return format("a tie, within {:.0f} %: {}", 100 * request_.margin, slower);
    }
    if (request_.objective == Objective::gpus && layout.choice.ranks > best_.choice.ranks) {
      return format("needs {} ranks, where {} are enough", layout.choice.ranks, best_.choice.ranks);
    }
    if (request_.objective == Objective::cost) {
      return format("costs {:.4g} a step, not {:.4g}: on {} ranks, {}", layout.score.value,
                    best_.score.value, layout.choice.ranks, slower);
    }
    if (request_.objective == Objective::carbon) {
      return format("emits {:.4g} kg of CO2 a step, not {:.4g}: on {} ranks, {}",
                    layout.score.value, best_.score.value, layout.choice.ranks, slower);
    }
    return slower;
  }

  Searcher& searcher_;
  const SearchRequest& request_;
  predict::LowerBounds shares_;
  Simulated best_;
  Explained explained_best_;
};

/// The values that a search starts from: on a machine with GPUs they compute.
schema::Options searched_keys(const config::Config& config, const predict::Machine& machine) {
  auto keys = config.options();
  auto& backend = keys.numerics.backend;
  if (machine.node.gpus > 0 && backend == config::KernelBackend::automatic) {
    backend = config::KernelBackend::cuda;
  }
  return keys;
}

/// Rule against a known layout; nothing where so many ranks have no such degrees.
std::optional<JudgedLayout> forbidden(const KnownLayout& known, const schema::Options& keys,
                                      const model::ModelConfig& model, int ranks) {
  if (ranks % (known.tensor * known.pipeline) != 0) return std::nullopt;
  JudgedLayout judged{
      .layout = {.ranks = ranks, .tensor = known.tensor, .pipeline = known.pipeline},
      .name = known.name,
      .step = {},
      .memory_bytes = {},
      .cost = {},
      .kg_co2 = {},
      .lost_because = {}};
  const auto options = engine::options_from(with_layout(keys, judged.layout), model,
                                            judged.layout.mesh(), base::Rank{0});
  if (options) return std::nullopt;
  judged.lost_because = "is not legal: " + options.failure().text;
  return judged;
}

/// A layout that fits on twice as many ranks, or else on four times as many, and so on; nothing
/// where a node's memory is that of all its ranks.
std::optional<LayoutChoice> fitting_on_more(const schema::Options& keys,
                                            const model::ModelConfig& model,
                                            const predict::Machine& machine, SearchRequest request,
                                            const std::optional<inference::SampleTask>& samples) {
  constexpr int most_times = 64;
  if (machine.node.computes_on_cores()) return std::nullopt;
  request.objective = Objective::time;
  const auto most =
      std::min<std::int64_t>(std::int64_t{most_times} * request.ranks, most_searched_ranks);
  while (2 * std::int64_t{request.ranks} <= most) {
    request.ranks *= 2;
    const auto found = Searcher(keys, model, machine, request, samples).smallest(all_layouts());
    if (found && found->has_room()) return found->choice;
  }
  return std::nullopt;
}

base::Result<JudgedLayout> explained_layout(Judge& judge, const LayoutFilter& filter,
                                            const SearchRequest& request) {
  auto found =
      judge.best_of({[&](const LayoutChoice& choice) { return filter.matches_arrangement(choice); },
                     [&](const LayoutChoice& choice) { return filter.matches(choice); }},
                    request.why);
  if (found) return *std::move(found);
  return base::usage_failure(
      format("--why: no layout with {} is legal on {} ranks, or among those that are searched "
             "(trireme plan with these settings says which rule forbids them, if one does); ask "
             "about another one",
             request.why, request.ranks));
}

}  // namespace

base::Result<SearchResult> search_layouts(const config::Config& config,
                                          const model::ModelConfig& model,
                                          const predict::Machine& machine,
                                          const SearchRequest& request) {
  if (auto status = check_search(config, machine, request); !status) return status.failure();
  std::optional<LayoutFilter> asked;
  if (!request.why.empty()) {
    auto filter = LayoutFilter::parse(request.why);
    if (!filter) return filter.failure();
    asked = *std::move(filter);
  }
  const auto samples = inference::read_sample_task(config, model);
  if (!samples) return samples.failure();

  SearchResult result{.machine = machine.name,
                      .objective = request.objective,
                      .margin = request.margin,
                      .best = {},
                      .known = {},
                      .asked = {},
                      .keys = searched_keys(config, machine)};
  Searcher searcher(result.keys, model, machine, request, *samples);
  const auto found =
      searcher.best(all_layouts(), static_cast<std::size_t>(request.top), request.margin);
  if (found.empty()) {
    return none_fits(searcher.smallest(all_layouts()),
                     fitting_on_more(result.keys, model, machine, request, *samples), machine,
                     request);
  }
  Judge judge(searcher, request, found.front());
  for (const auto& layout : found) {
    if (static_cast<int>(result.best.size()) == request.top) break;
    result.best.push_back(judge.judged(layout));
    result.best.back().rank = static_cast<int>(result.best.size());
  }
  const auto last_tie = found.front().score.with_margin(request.margin);
  result.ties = static_cast<std::size_t>(
      std::count_if(found.begin(), found.end(),
                    [&](const Simulated& layout) { return layout.score <= last_tie; }));
  for (const auto& known :
       request.explains_known ? known_layouts(machine) : std::vector<KnownLayout>()) {
    auto layout = judge.best_of(known.filter, known.name);
    if (!layout) layout = forbidden(known, result.keys, model, request.ranks);
    if (layout) result.known.push_back(*std::move(layout));
  }
  if (asked) {
    auto layout = explained_layout(judge, *asked, request);
    if (!layout) return layout.failure();
    result.asked.push_back(*std::move(layout));
  }
  result.legal = searcher.legal();
  result.simulated = searcher.simulated();
  result.measured = searcher.measured();
  return result;
}

}  // namespace trireme::plan
