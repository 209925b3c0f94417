// SPDX-License-Identifier: Apache-2.0
#include "trireme/layout/parallel_rules.hpp"

#include "trireme/base/format.hpp"
#include "trireme/base/suggest.hpp"
#include "trireme/layout/arrange.hpp"

#include "layout/even_counts.hpp"
#include "mesh_choices.hpp"
#include "quantities.hpp"

#include <algorithm>
#include <limits>

namespace trireme::layout {
namespace {

using base::format;
using Arrangement = ParallelArrangement;

/// Upper limit of a step's actions; a mistyped number ends here and not in the allocator.
constexpr std::int64_t max_actions = std::int64_t{1} << 24;

/// "1, 2, 4": the divisors of a number of the machine's or the model's size.
std::vector<int> divisors(std::int64_t number) {
  constexpr std::int64_t most = 1 << 24;
  return base::divisors(static_cast<int>(std::clamp<std::int64_t>(number, 1, most)));
}

/// The next multiples of `unit` around `number`: "8 or 12". The upper one is left out where it is
/// beyond all numbers.
std::string nearest_multiples(std::int64_t number, std::int64_t unit) {
  const auto below = number / unit * unit;
  if (below == 0) return format("{}", unit);
  std::int64_t above = 0;
  if (__builtin_add_overflow(below, unit, &above)) return format("{}", below);
  return format("{} or {}", below, above);
}

class Rules {
 public:
  explicit Rules(const Arrangement& arrangement) : given_(arrangement) {}

  std::vector<Violation> check() {
    at_least_one();
    // Stop: the other rules divide by these numbers.
    if (!found_.empty()) return std::move(found_);
    world();
    model();
    schedule();
    if (given_.stage_layers) given_.stage_layers->empty() ? even_layers() : stage_layers();
    batches();
    chunks();
    rows();
    return std::move(found_);
  }

 private:
  void add(ParallelRule rule, std::vector<Quantity> quantities, std::string sentence) {
    found_.push_back({rule, std::move(quantities), std::move(sentence)});
  }

  void at_least_one();
  void world();
  void model();
  void schedule();
  void even_layers();
  void stage_layers();
  void batches();
  void rounds(std::int64_t batches, std::int64_t share);
  void chunks();
  void rows();

  /// The degree of data parallelism that is given or left; none where it is open, or where the
  /// others do not divide the world.
  Arrangement::Number data() const {
    if (given_.data || !given_.world_size || !knows_others()) return given_.data;
    const auto others = known_ranks(given_);
    if (*given_.world_size % others != 0) return std::nullopt;
    return *given_.world_size / others;
  }
  /// Whether all degrees but that of data parallelism are given; that of context parallelism
  /// always is.
  bool knows_others() const {
    const auto degrees = degree_keys();
    return std::all_of(degrees.begin(), degrees.end(), [this](const ArrangementKey& degree) {
      const bool open = degree.quantity == Quantity::data || degree.quantity == Quantity::context;
      return open || given_.*degree.number;
    });
  }
  /// Positions of the model; none where they are open.
  Arrangement::Number positions() const {
    if (!given_.pipeline || !given_.virtual_stages) return std::nullopt;
    return saturated(*given_.pipeline, *given_.virtual_stages);
  }
  std::int64_t context() const { return given_.context.value_or(1); }
  bool interleaved() const { return given_.schedule == ScheduleKind::interleaved; }

  const Arrangement& given_;
  std::vector<Violation> found_;
};

void Rules::at_least_one() {
  const auto look = [&](Quantity quantity, const Arrangement::Number& number, const char* why) {
    if (!number || *number >= 1) return;
    add(ParallelRule::degree_below_one, {quantity},
        format("<{}> is below 1 ({}); try 1 or more", word_of(quantity), why));
  };
  for (const auto& key : arrangement_keys()) {
    if (key.number == nullptr) continue;
    const bool degree = key.key.starts_with("parallel.");
    look(key.quantity, given_.*key.number,
         degree ? "a degree counts ranks" : "there would be nothing to do");
  }
  look(Quantity::world_size, given_.world_size, "a mesh needs ranks to arrange");
  look(Quantity::micro_batches, given_.micro_batches, "a schedule would have nothing to do");
}

void Rules::world() {
  if (!given_.world_size) return;
  const bool knows_all = knows_others();
  const auto known = known_ranks(given_);
  const auto ranks = *given_.world_size;
  if (ranks > max_world_size) {
    add(ParallelRule::world_not_filled, {Quantity::world_size},
        format("<world_size> is above {} (no machine has so many devices); start fewer ranks",
               max_world_size));
    return;
  }
  if (knows_all && given_.data ? known == ranks : ranks % known == 0) return;
  std::vector<Quantity> degrees;
  for (const auto& degree : degree_keys()) {
    if (degree.quantity == Quantity::context && context() == 1) continue;
    degrees.push_back(degree.quantity);
  }
  degrees.push_back(Quantity::world_size);
  if (!knows_all) {
    add(ParallelRule::world_not_filled, degrees,
        format("the degrees that are given make {} ranks, which do not divide the <world_size> "
               "(every rank has exactly one place in the mesh); start a multiple of {}",
               known, known));
    return;
  }
  auto wanted = given_;
  if (!wanted.data) wanted.data = std::max<std::int64_t>(1, ranks / known);
  const auto suits = [&](const Mesh& mesh) {
    auto other = given_;
    describe(mesh, other);
    return violations(other).empty();
  };
  add(ParallelRule::world_not_filled, degrees,
      wrong_product(extents_of(wanted), static_cast<int>(ranks), suits).text);
}

void Rules::model() {
  if (!given_.tensor) return;
  const auto tensor = *given_.tensor;
  if (given_.heads && *given_.heads % tensor != 0) {
    add(ParallelRule::heads_not_divided, {Quantity::tensor, Quantity::heads},
        format("<tensor> does not divide <heads> (each rank holds whole heads); try {}",
               base::join(divisors(*given_.heads), ", ")));
  } else if (given_.kv_heads && *given_.kv_heads % tensor != 0 && tensor % *given_.kv_heads != 0) {
    std::vector<int> valid;
    for (const int choice : divisors(given_.heads.value_or(*given_.kv_heads))) {
      if (*given_.kv_heads % choice == 0 || choice % *given_.kv_heads == 0) valid.push_back(choice);
    }
    add(ParallelRule::kv_heads_not_divided, {Quantity::tensor, Quantity::kv_heads},
        format("<tensor> and <kv_heads> do not divide one another (key heads are split evenly or "
               "replicated evenly); try {}",
               base::join(valid, ", ")));
  }
  for (const auto& [quantity, size] : {std::pair{Quantity::vocabulary, given_.vocabulary},
                                       std::pair{Quantity::intermediate, given_.intermediate}}) {
    if (!size || *size >= tensor) continue;
    add(ParallelRule::rows_too_few, {Quantity::tensor, quantity},
        format("<tensor> exceeds <{}> (every rank needs a row); use less",
               quantity == Quantity::vocabulary ? "vocabulary" : "intermediate"));
  }
}

void Rules::schedule() {
  if (!given_.schedule) return;
  const auto virtual_stages = given_.virtual_stages.value_or(1);
  if (!has_virtual_stages(*given_.schedule)) {
    if (virtual_stages == 1) return;
    add(ParallelRule::virtual_without_interleaved, {Quantity::virtual_stages, Quantity::schedule},
        "<virtual_stages> does not go with <schedule> (only schedules interleaved and zb-v give a "
        "stage more than one piece of the model); set [schedule]=interleaved or "
        "[virtual_stages]=1");
    return;
  }
  if (!interleaved() && given_.virtual_stages && virtual_stages != 2) {
    add(ParallelRule::v_without_two_chunks, {Quantity::schedule, Quantity::virtual_stages},
        "<schedule> does not go with <virtual_stages> (each stage holds two pieces, one of the way "
        "down and one of the way up); set [virtual_stages]=2 or [schedule]=zb-h1");
  } else if (given_.virtual_stages && virtual_stages < 2) {
    add(ParallelRule::interleaved_without_virtual, {Quantity::schedule, Quantity::virtual_stages},
        "<schedule> needs more than <virtual_stages> (with one piece a stage there is nothing to "
        "interleave); set [virtual_stages]=2 or [schedule]=1f1b");
  }
  if (given_.pipeline && *given_.pipeline < 2) {
    add(ParallelRule::interleaved_on_one_stage, {Quantity::schedule, Quantity::pipeline},
        "<schedule> needs more than <pipeline> (there is one stage); raise [pipeline] or set "
        "[schedule]=1f1b");
  }
}

void Rules::even_layers() {
  const auto pieces = positions();
  if (!pieces || !given_.layers || *pieces <= *given_.layers) return;
  const auto layers = *given_.layers;
  const auto virtual_stages = given_.virtual_stages.value_or(1);
  std::vector<std::int64_t> choices;
  for (std::int64_t choice = 1; choice <= std::min<std::int64_t>(64, layers / virtual_stages);
       ++choice) {
    if (layers % (choice * virtual_stages) == 0) choices.push_back(choice);
  }
  // These schedules take no single virtual stage.
  const bool has_more = given_.schedule && has_virtual_stages(*given_.schedule);
  const auto advice = choices.empty()
                          ? std::string(has_more ? "set [schedule]=1f1b and [virtual_stages]=1"
                                                 : "set [virtual_stages]=1")
                          : format("try [pipeline] = {}", base::join(choices, ", "));
  if (virtual_stages == 1) {
    add(ParallelRule::too_many_positions, {Quantity::pipeline, Quantity::layers},
        "<pipeline> is more than <layers> (each stage holds at least one layer); " + advice);
    return;
  }
  add(ParallelRule::too_many_positions,
      {Quantity::pipeline, Quantity::virtual_stages, Quantity::layers},
      "<pipeline> times <virtual_stages> is more than <layers> (each piece of the pipeline holds "
      "at least one layer); " +
          advice);
}

void Rules::stage_layers() {
  if (!given_.stage_layers) return;
  const auto& list = *given_.stage_layers;
  const auto pieces = positions();
  const bool fits = given_.layers && pieces && *pieces <= *given_.layers &&
                    *given_.layers <= std::numeric_limits<int>::max();
  const auto even = fits ? format("try {}", base::join(even_counts(static_cast<int>(*given_.layers),
                                                                   static_cast<int>(*pieces)),
                                                       ", "))
                         : std::string("correct the list");
  if (pieces && static_cast<std::int64_t>(list.size()) != *pieces) {
    add(ParallelRule::stage_layers_count,
        {Quantity::stage_layers, Quantity::pipeline, Quantity::virtual_stages},
        format("<stage_layers> has {} entries, and the pipeline has {} pieces (<pipeline>, "
               "<virtual_stages>); {}",
               list.size(), *pieces, fits ? even : "give one entry a piece"));
  }
  for (std::size_t at = 0; at < list.size(); ++at) {
    const bool end = at == 0 || at + 1 == list.size();
    if (list[at] > 0 || (list[at] == 0 && end)) continue;
    add(ParallelRule::stage_layers_empty, {Quantity::stage_layers},
        format("<stage_layers> holds {} at position {} (only the first and the last position may "
               "go without layers: they have the embedding and the head); {}",
               list[at], at, even));
    return;
  }
  std::int64_t sum = 0;
  for (const auto count : list) {
    if (__builtin_add_overflow(sum, count, &sum)) sum = std::numeric_limits<std::int64_t>::max();
  }
  if (given_.layers && sum != *given_.layers) {
    add(ParallelRule::stage_layers_sum, {Quantity::stage_layers, Quantity::layers},
        format("<stage_layers> sums to {}, not to <layers> (each layer stands on one stage); {}",
               sum, even));
  }
}

void Rules::batches() {
  auto batches = given_.micro_batches;
  std::int64_t share = 1;
  if (given_.global_batch && given_.micro_batch) {
    const auto global = *given_.global_batch;
    share = *given_.micro_batch;
    if (global % share != 0) {
      add(ParallelRule::batch_not_divided, {Quantity::global_batch, Quantity::micro_batch},
          format("<global_batch> is not a multiple of <micro_batch> (a step is whole "
                 "micro-batches); try {}",
                 nearest_multiples(global, share)));
      return;
    }
    const auto shares = data();
    if (!shares) return;
    share = saturated(share, *shares);
    if (global % share != 0) {
      const auto replicas = given_.data ? std::string("<data>") : format("{} replicas", *shares);
      add(ParallelRule::batch_not_divided,
          {Quantity::global_batch, Quantity::micro_batch, Quantity::data},
          format("<global_batch> is not a multiple of <micro_batch> times {} (each replica takes "
                 "whole micro-batches); try {}",
                 replicas, nearest_multiples(global, share)));
      return;
    }
    batches = global / share;
  }
  if (batches) rounds(*batches, share);
}

/// Rules of the schedule for `batches` micro-batches a step; `share` sequences of the global batch
/// make one of them on every replica.
void Rules::rounds(std::int64_t batches, std::int64_t share) {
  if (!given_.pipeline) return;
  const auto stages = *given_.pipeline;
  if (interleaved() && batches % stages != 0) {
    add(ParallelRule::rounds_not_filled,
        {given_.micro_batches ? Quantity::micro_batches : Quantity::global_batch,
         Quantity::pipeline},
        given_.micro_batches
            ? format("<micro_batches> are not a multiple of <pipeline> (schedule interleaved "
                     "hands them around in rounds of one a stage); try {} micro-batches, or "
                     "[schedule]=1f1b",
                     nearest_multiples(batches, stages))
            : format("<global_batch> gives each replica {} micro-batches, not a multiple of "
                     "<pipeline> (schedule interleaved hands them around in rounds of one a "
                     "stage); try {}",
                     batches,
                     nearest_multiples(given_.global_batch.value_or(batches),
                                       saturated(share, stages))));
  }
  const int kinds = given_.schedule && splits_backward(*given_.schedule) ? 3 : 2;
  const auto actions =
      saturated(saturated(saturated(kinds, stages), batches), given_.virtual_stages.value_or(1));
  if (actions > max_actions) {
    add(ParallelRule::too_many_actions, {Quantity::pipeline, Quantity::virtual_stages},
        format("<pipeline>, {} micro-batches and {} virtual stages make more than {} actions a "
               "step (the schedule would not fit in memory); use fewer, larger micro-batches",
               batches, given_.virtual_stages.value_or(1), max_actions));
  }
}

void Rules::chunks() {
  if (!given_.sequence_length || context() == 1) return;
  const auto chunks = saturated(2, context());
  if (*given_.sequence_length % chunks == 0) return;
  add(ParallelRule::chunks_not_divided, {Quantity::sequence_length, Quantity::context},
      format("<sequence_length> is not a multiple of 2 times <context> (each rank holds two equal "
             "chunks of a sequence, one of its beginning and one of its end); try {}",
             nearest_multiples(*given_.sequence_length, chunks)));
}

void Rules::rows() {
  if (given_.sequence != true || !given_.tensor) return;
  if (!given_.micro_batch || !given_.sequence_length) return;
  const auto tokens = saturated(*given_.micro_batch, *given_.sequence_length);
  if (context() > 1) {
    const auto parts = saturated(*given_.tensor, context());
    if (tokens % parts == 0) return;
    add(ParallelRule::rows_not_divided,
        {Quantity::micro_batch, Quantity::sequence_length, Quantity::tensor, Quantity::context},
        format("<micro_batch> times <sequence_length> is not a multiple of <tensor> times "
               "<context> (with parallel.sequence each rank holds an equal part of a "
               "micro-batch's tokens); change the first, or for the second try {}",
               nearest_multiples(*given_.sequence_length, saturated(2, parts))));
    return;
  }
  if (tokens % *given_.tensor == 0) return;
  add(ParallelRule::rows_not_divided,
      {Quantity::micro_batch, Quantity::sequence_length, Quantity::tensor},
      format("<micro_batch> times <sequence_length> is not a multiple of <tensor> (with "
             "parallel.sequence each rank holds an equal part of a micro-batch's tokens); change "
             "the first, or for the second try {}",
             nearest_multiples(*given_.sequence_length, *given_.tensor)));
}

}  // namespace

std::vector<Violation> violations(const ParallelArrangement& arrangement) {
  return Rules(arrangement).check();
}

}  // namespace trireme::layout
