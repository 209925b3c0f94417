// SPDX-License-Identifier: Apache-2.0
#include "trireme/engine/choose_recompute.hpp"

#include "trireme/base/format.hpp"
#include "trireme/device/pricing.hpp"
#include "trireme/engine/measure.hpp"
#include "trireme/ownership/price.hpp"

#include <algorithm>
#include <optional>
#include <vector>

namespace trireme::engine {

using layers::Activation;
using layers::Recompute;
using layout::Axis;

namespace {

constexpr std::size_t mebibyte = std::size_t{1} << 20;

using Total = std::function<std::size_t(const EngineOptions&)>;

/// On CPUs, state is in the host's memory anyway.
bool can_offload(const EngineOptions& options) {
  return options.numerics.gpu_attention.has_value() &&
         options.memory.optimizer_home == Home::device &&
         !optim::traits(options.sharding.rule.kind).updates_matrices;
}

class Choice {
 public:
  Choice(const EngineOptions& options, const Total& total) : options_(options), total_(total) {
    auto& sharding = options_.sharding;
    // One rank speaks for its stage.
    for (const auto axis : {Axis::data, Axis::context, Axis::tensor}) {
      sharding.rank = sharding.mesh.moved(sharding.rank, axis, 0);
    }
    // Enough to hold as many activations as the schedule ever does; what more micro-batches take
    // beside them is on both sides of a difference.
    const auto& schedule = options_.schedule;
    const bool holds_all =
        schedule.kind == layout::ScheduleKind::gpipe || sharding.takes_units_in_turn();
    if (!holds_all) {
      few_ = std::min(schedule.micro_batches, 4 * sharding.mesh.degree(Axis::pipeline));
    }
    kept_ = bytes(Recompute{});
    plain_seconds_ = seconds(Recompute{});
    layer_seconds_ = seconds(Recompute{Activation::layer}) - plain_seconds_;
    const auto division = sharding_of(options_);
    for (const auto& chunk : division.chunks()) layers_ += chunk.end - chunk.begin;
  }

  std::size_t freed(const Recompute& recompute) const {
    const auto left = bytes(recompute);
    return left < kept_ ? kept_ - left : 0;
  }
  /// Layers that must be computed again as a whole, beside this set, to free so many bytes.
  std::optional<int> layers_for(const Recompute& set, std::size_t wanted) const {
    const auto frees = [&](int layers) { return freed(with_layers(set, layers)) >= wanted; };
    if (frees(0)) return 0;
    if (!frees(layers_)) return std::nullopt;
    int too_few = 0;
    int enough = layers_;
    while (enough - too_few > 1) {
      const int middle = (too_few + enough) / 2;
      (frees(middle) ? enough : too_few) = middle;
    }
    return enough;
  }
  double longer(const Recompute& set, int layers) const {
    const double whole = layers_ == 0 ? 0.0 : static_cast<double>(layers) / layers_;
    const double more = (1.0 - whole) * (seconds(set) - plain_seconds_) + whole * layer_seconds_;
    return more / plain_seconds_;
  }
  static Recompute with_layers(Recompute set, int layers) {
    return layers == 0 ? set : set.add(Activation::layer, layers);
  }
  std::size_t most() const { return freed({Activation::layer}); }

 private:
  std::size_t bytes(const Recompute& recompute) const {
    auto options = with_recompute(options_, recompute);
    options.schedule.micro_batches = few_;
    return total_(options);
  }
  double seconds(const Recompute& recompute) const {
    return predicted_seconds(with_recompute(options_, recompute));
  }

  EngineOptions options_;
  const Total& total_;
  int few_ = options_.schedule.micro_batches;
  std::size_t kept_ = 0;
  double plain_seconds_ = 0;
  double layer_seconds_ = 0;
  int layers_ = 0;
};

}  // namespace

std::vector<Recompute> recompute_sets() {
  std::vector<Recompute> sets;
  for (const bool norms : {false, true}) {
    for (const bool attention : {false, true}) {
      for (const auto& wide :
           {Recompute{}, Recompute{Activation::activation}, Recompute{Activation::mlp}}) {
        auto set = wide;
        if (norms) set.add(Activation::norms);
        if (attention) set.add(Activation::attention);
        sets.push_back(set);
      }
    }
  }
  return sets;
}

EngineOptions with_recompute(EngineOptions options, const Recompute& recompute) {
  options.memory.recompute = recompute;
  // Copies are worth their memory where a step reads weights more than once.
  const bool multiplies_again =
      recompute.layers(Activation::layer) > 0 || recompute.layers(Activation::mlp) > 0;
  // Kept ones are whole.
  const bool once = (options.schedule.micro_batches == 1 && !multiplies_again) ||
                    options.sharding.divides_parameters();
  options.memory.weight_copies =
      once ? layers::WeightCopies::for_each_use : layers::WeightCopies::kept;
  return options;
}

std::int32_t mebibytes_over(std::size_t bytes, std::int64_t limit) {
  const auto most = static_cast<std::size_t>(limit);
  if (bytes <= most) return 0;
  return static_cast<std::int32_t>((bytes - most + mebibyte - 1) / mebibyte);
}

std::string ChosenRecompute::text() const {
  if (recompute == Recompute{}) return "train.memory_limit leaves room to keep all activations";
  return base::format(
      "computed again in backward: {} (frees {}; {:.1f} % more time in forward and backward, "
      "predicted)",
      recompute.text(), base::bytes_text(freed_bytes), longer * 100);
}

bool must_fit(const EngineOptions& options, std::int64_t limit) {
  // One stage runs 1f1b, whichever schedule is asked for.
  return limit > 0 && options.schedule.kind == layout::ScheduleKind::zero_bubble_h2 &&
         options.sharding.mesh.degree(Axis::pipeline) > 1;
}

base::Status check_held_activations(const EngineOptions& options, std::int64_t limit,
                                    const Total& total) {
  if (!must_fit(options, limit)) return {};
  const auto bytes = total(options);
  if (mebibytes_over(bytes, limit) == 0) return {};
  auto fewer = options;
  fewer.schedule.kind = layout::ScheduleKind::zero_bubble_h1;
  const auto fewer_bytes = total(fewer);
  const bool fewer_fit = mebibytes_over(fewer_bytes, limit) == 0;
  const int stages = options.sharding.mesh.degree(Axis::pipeline);
  return base::usage_failure(base::format(
      "parallel.schedule = zb-h2 holds activations of {} micro-batches on a stage, and rank {} "
      "takes {} with them, more than train.memory_limit = {} (zb-h1 holds {}, which take {}); use "
      "{}train.activation_checkpointing=auto or a larger limit",
      std::min(2 * stages - 1, options.schedule.micro_batches), options.sharding.rank.value(),
      base::bytes_text(bytes), base::bytes_text(static_cast<std::size_t>(limit)),
      std::min(stages, options.schedule.micro_batches), base::bytes_text(fewer_bytes),
      fewer_fit ? "parallel.schedule=zb-h1, " : ""));
}

base::Result<ChosenRecompute> choose_recompute(const EngineOptions& options, std::int32_t mebibytes,
                                               const Total& total) {
  if (mebibytes == 0) return ChosenRecompute{};
  const auto bytes = static_cast<std::size_t>(mebibytes) * mebibyte;
  const Choice choice(options, total);
  std::optional<ChosenRecompute> best;
  for (const auto& set : recompute_sets()) {
    const auto layers = choice.layers_for(set, bytes);
    if (!layers) continue;
    const auto longer = choice.longer(set, *layers);
    if (best && longer >= best->longer) continue;
    const auto recompute = Choice::with_layers(set, *layers);
    best = ChosenRecompute{recompute, choice.freed(recompute), longer};
  }
  if (!best) {
    return base::usage_failure(base::format(
        "train.memory_limit is {} too small for stage {}, and computing all of its layers again "
        "frees {}; use more ranks, a smaller train.micro_batch{}{} or a larger limit",
        base::bytes_text(bytes),
        options.sharding.mesh.coordinate(Axis::pipeline, options.sharding.rank),
        base::bytes_text(choice.most()),
        options.schedule.kind == layout::ScheduleKind::zero_bubble_h2
            ? ", parallel.schedule=zb-h1, which holds about half as many activations,"
            : "",
        can_offload(options) ? ", offload.optimizer=host" : ""));
  }
  return *best;
}

}  // namespace trireme::engine
