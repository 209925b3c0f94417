// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/comm/axis_groups.hpp"
#include "trireme/device/pricing.hpp"
#include "trireme/engine/engine.hpp"
#include "trireme/telemetry/spans.hpp"

#include "unit/model/published.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

/// An engine's own operations on a timeline of two streams, at constants that are written here.
namespace trireme::tests {

/// Products and memory of an H100 at work; bus bandwidth of NCCL's collectives among 8 of them.
inline constexpr device::KernelRates rates{650e12, 2.7e12, 0};
inline constexpr double bus_bytes_per_second = 370e9;
inline constexpr int layer_count = 8;
inline constexpr int tensor_degree = 8;

/// A collective that starts, and the bytes that each rank sends.
struct Collective {
  enum class Kind { all_reduce, reduce_scatter, all_gather };
  Kind kind = Kind::all_reduce;
  double bytes = 0;
};
using Start = std::function<comm::Work(const Collective&)>;

enum class Pass { forward, backward, elsewhere };

/// Collectives of a pass: how long they take, and how long the order of kernels stood still.
struct Collectives {
  int count = 0;
  int joined_at_start = 0;
  double seconds = 0;
  double exposed_seconds = 0;

  Collectives& operator+=(const Collectives& other) {
    count += other.count;
    joined_at_start += other.joined_at_start;
    seconds += other.seconds;
    exposed_seconds += other.exposed_seconds;
    return *this;
  }
  double hidden() const { return 1 - exposed_seconds / seconds; }
};

/// Kernels of one stream, collectives of another.
class Timeline final : public telemetry::SpanObserver {
 public:
  double& computed() { return computed_; }
  Collectives& gathers(Pass pass) { return collectives_[static_cast<std::size_t>(pass)][0]; }
  Collectives& sums(Pass pass) { return collectives_[static_cast<std::size_t>(pass)][1]; }
  Collectives of(Pass pass) {
    auto both = gathers(pass);
    return both += sums(pass);
  }

  void begin(telemetry::SpanKind kind, const telemetry::SpanPlace&, std::uint64_t) override {
    open_.push_back(kind);
  }
  void end() override { open_.pop_back(); }

  comm::Work start(const Collective& collective) {
    const bool gathers_rows = collective.kind == Collective::Kind::all_gather;
    auto& of_pass = gathers_rows ? gathers(pass()) : sums(pass());
    const double seconds = collective.bytes / bus_bytes_per_second;
    ++of_pass.count;
    of_pass.seconds += seconds;
    links_free_ = std::max(links_free_, now()) + seconds;
    return comm::Work(std::make_unique<Operation>(*this, of_pass, links_free_));
  }

 private:
  class Operation final : public comm::Work::Operation {
   public:
    Operation(Timeline& timeline, Collectives& of_pass, double end)
        : timeline_(timeline), of_pass_(of_pass), end_(end), started_(timeline.computed_) {}
    bool poll() override { return false; }
    bool done() const override { return false; }
    void wait() override {
      const double exposed = std::max(0.0, end_ - timeline_.now());
      if (timeline_.computed_ == started_) ++of_pass_.joined_at_start;
      of_pass_.exposed_seconds += exposed;
      timeline_.waited_ += exposed;
    }

   private:
    Timeline& timeline_;
    Collectives& of_pass_;
    double end_;
    double started_;
  };

  double now() const { return computed_ + waited_; }
  Pass pass() const {
    const auto is_open = [this](telemetry::SpanKind kind) {
      return std::find(open_.begin(), open_.end(), kind) != open_.end();
    };
    if (is_open(telemetry::SpanKind::layer_forward)) return Pass::forward;
    const bool is_backward = is_open(telemetry::SpanKind::layer_backward_input) ||
                             is_open(telemetry::SpanKind::layer_backward_weight);
    return is_backward ? Pass::backward : Pass::elsewhere;
  }

  double computed_ = 0;
  double waited_ = 0;
  double links_free_ = 0;
  std::vector<telemetry::SpanKind> open_;
  std::array<std::array<Collectives, 2>, 3> collectives_{};  // [pass][gathers, sums]
};

/// Pretended ranks of a group. A ring that gathers or sums equal parts moves all but a rank's own
/// over each link; broadcasts and reductions, of which unequal parts are made, move all.
class StartedGroup final : public comm::ProcessGroup {
 public:
  StartedGroup(const comm::ProcessGroup& like, Start start)
      : ProcessGroup(like.name(), like.ranks(), like.rank()), start_(std::move(start)) {}

  const char* backend() const override { return "dry-run"; }
  comm::Work start_all_reduce(const device::Tensor& x, comm::ReduceOp) override {
    return start(Collective::Kind::all_reduce, x, 2, {});
  }
  comm::Work start_reduce_scatter(const device::Tensor& whole, const device::Tensor&,
                                  const comm::Cuts& cuts) override {
    return start(Collective::Kind::reduce_scatter, whole, 1, cuts);
  }
  comm::Work start_all_gather(const device::Tensor&, const device::Tensor& whole,
                              const comm::Cuts& cuts) override {
    return start(Collective::Kind::all_gather, whole, 1, cuts);
  }
  comm::Work start_all_to_all(const device::Tensor&, const device::Tensor&) override { return {}; }
  comm::Work start_broadcast(const device::Tensor&, int) override { return {}; }
  comm::Work start_send(const device::Tensor&, int, int) override { return {}; }
  comm::Work start_receive(const device::Tensor&, int, int) override { return {}; }
  void barrier() override {}

 private:
  comm::Work start(Collective::Kind kind, const device::Tensor& whole, int passes,
                   const comm::Cuts& cuts) {
    const double bytes = passes * static_cast<double>(whole.byte_count());
    return start_({kind, cuts.empty() ? bytes * (size() - 1) / size() : bytes});
  }

  Start start_;
};

/// Two sequences, a chunk of the layers of one of four stages of Llama-3 8B.
inline engine::EngineOptions eight_billion_in_eight(
    model::SequenceParallel sequence, layers::TensorOverlap overlap = layers::TensorOverlap::plain,
    std::int64_t sequence_length = 4096) {
  engine::EngineOptions options;
  options.model = llama3_8b();
  options.model.num_hidden_layers = layer_count;
  options.sharding.mesh = layout::Mesh::of(1, 1, tensor_degree);
  options.sharding.sequence_parallel = sequence;
  options.schedule.micro_batch = 2;
  options.schedule.sequence_length = sequence_length;
  options.schedule.tensor_overlap = overlap;
  options.numerics.dtype = device::DType::bf16;
  return options;
}

/// The forward and backward of a step; collectives of an axis are started by `start`.
inline void run_observed(const engine::EngineOptions& options, device::Kernels& kernels,
                         telemetry::SpanObserver& observer, const Start& start,
                         layout::Axis axis = layout::Axis::tensor) {
  auto groups = comm::make_dry_run_groups(options.sharding.mesh, options.sharding.rank,
                                          comm::DryRunData::untouched, {});
  for (auto& each : groups.all()) {
    if (each.members != comm::Members::all || each.axis != axis) continue;
    each.group = std::make_unique<StartedGroup>(*each.group, start);
  }
  auto memory = engine::Memory::measuring();
  engine::Engine engine(options, groups.views(), kernels, memory);
  const telemetry::ObservedSpans observed(&observer);
  engine.run_schedule();
}

inline void run_on(Timeline& timeline, const engine::EngineOptions& options) {
  const auto kernels = device::make_pricing_kernels(rates, timeline.computed());
  run_observed(options, *kernels, timeline,
               [&](const Collective& collective) { return timeline.start(collective); });
}

}  // namespace trireme::tests
