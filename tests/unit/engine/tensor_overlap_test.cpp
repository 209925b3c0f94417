// SPDX-License-Identifier: Apache-2.0
// How much of tensor parallelism's collectives a layer's backward hides, counted: an engine's own
// operations on a timeline of two streams, at constants that are written here.
#include "trireme/comm/axis_groups.hpp"
#include "trireme/device/pricing.hpp"
#include "trireme/engine/engine.hpp"
#include "trireme/telemetry/spans.hpp"

#include "unit/model/published.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <iostream>
#include <memory>
#include <vector>

using namespace trireme;
using namespace trireme::tests;
using layout::Axis;
using model::SequenceParallel;
using telemetry::SpanKind;

namespace {

/// Products and memory of an H100 at work; bus bandwidth of NCCL's collectives among 8 of them.
constexpr device::KernelRates rates{650e12, 2.7e12, 0};
constexpr double bus_bytes_per_second = 370e9;
constexpr int layer_count = 4;
constexpr int tensor_degree = 8;

/// Collectives of a pass: how long they take, and how long the order of kernels stood still.
struct Collectives {
  int count = 0;
  int joined_at_start = 0;
  double seconds = 0;
  double exposed_seconds = 0;
};

/// Kernels of one stream, collectives of another.
class Timeline final : public telemetry::SpanObserver {
 public:
  double& computed() { return computed_; }
  Collectives in_backward;
  Collectives elsewhere;

  void begin(SpanKind kind, const telemetry::SpanPlace&, std::uint64_t) override {
    open_.push_back(kind);
  }
  void end() override { open_.pop_back(); }

  comm::Work start(double seconds) {
    auto& of_pass = is_backward() ? in_backward : elsewhere;
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
  bool is_backward() const {
    return std::any_of(open_.begin(), open_.end(), [](SpanKind kind) {
      return kind == SpanKind::layer_backward_input || kind == SpanKind::layer_backward_weight;
    });
  }

  double computed_ = 0;
  double waited_ = 0;
  double links_free_ = 0;
  std::vector<SpanKind> open_;
};

/// Pretended ranks of a tensor-parallel group, whose collectives take time.
class TimedGroup final : public comm::ProcessGroup {
 public:
  TimedGroup(const comm::ProcessGroup& like, Timeline& timeline)
      : ProcessGroup(like.name(), like.ranks(), like.rank()), timeline_(timeline) {}

  const char* backend() const override { return "dry-run"; }
  comm::Work start_all_reduce(const device::Tensor& x, comm::ReduceOp) override {
    return start(x, 2);
  }
  comm::Work start_reduce_scatter(const device::Tensor& whole, const device::Tensor&,
                                  const comm::Cuts&) override {
    return start(whole, 1);
  }
  comm::Work start_all_gather(const device::Tensor&, const device::Tensor& whole,
                              const comm::Cuts&) override {
    return start(whole, 1);
  }
  comm::Work start_all_to_all(const device::Tensor&, const device::Tensor&) override { return {}; }
  comm::Work start_broadcast(const device::Tensor&, int) override { return {}; }
  comm::Work start_send(const device::Tensor&, int, int) override { return {}; }
  comm::Work start_receive(const device::Tensor&, int, int) override { return {}; }
  void barrier() override {}

 private:
  comm::Work start(const device::Tensor& whole, int passes) {
    const double moved = static_cast<double>(whole.byte_count()) * (size() - 1) / size();
    return timeline_.start(passes * moved / bus_bytes_per_second);
  }

  Timeline& timeline_;
};

engine::EngineOptions eight_billion_in_eight(SequenceParallel sequence) {
  engine::EngineOptions options;
  options.model = llama3_8b();
  options.model.num_hidden_layers = layer_count;
  options.sharding.mesh = layout::Mesh::of(1, 1, tensor_degree);
  options.sharding.sequence_parallel = sequence;
  options.schedule.sequence_length = 8192;
  options.numerics.dtype = device::DType::bf16;
  return options;
}

/// One micro-batch forward and backward.
void run_on(Timeline& timeline, const engine::EngineOptions& options) {
  auto groups = comm::make_dry_run_groups(options.sharding.mesh, options.sharding.rank,
                                          comm::DryRunData::untouched, {});
  for (auto& each : groups.all()) {
    if (each.ends || each.axis != Axis::tensor) continue;
    each.group = std::make_unique<TimedGroup>(*each.group, timeline);
  }
  const auto kernels = device::make_pricing_kernels(rates, timeline.computed());
  auto memory = engine::Memory::measuring();
  engine::Engine engine(options, groups.views(), *kernels, memory);
  const telemetry::ObservedSpans observed(&timeline);
  engine.run_schedule();
}

void print(const char* what, const Collectives& all) {
  std::cout << what << ", a layer's backward: " << all.count / layer_count << " collectives of "
            << 1e3 * all.seconds / layer_count << " ms, " << all.joined_at_start / layer_count
            << " joined at their start, exposed " << 1e3 * all.exposed_seconds / layer_count
            << " ms\n";
}

}  // namespace

TEST_CASE("backward computes weights' gradients beside collectives: of 8B on 8 ranks, counted") {
  Timeline cut;
  run_on(cut, eight_billion_in_eight(SequenceParallel::on));
  print("8B, tp8, sequence parallel", cut.in_backward);
  CHECK(cut.in_backward.count == 6 * layer_count);
  // The gradient of the layer's output alone, which its first product reads.
  CHECK(cut.in_backward.joined_at_start == layer_count);
  CHECK(cut.in_backward.exposed_seconds < 0.35 * cut.in_backward.seconds);
  CHECK(cut.elsewhere.joined_at_start == cut.elsewhere.count);

  Timeline whole;
  run_on(whole, eight_billion_in_eight(SequenceParallel::off));
  print("8B, tp8", whole.in_backward);
  CHECK(whole.in_backward.count == 2 * layer_count);
  CHECK(whole.in_backward.joined_at_start == 0);
  CHECK(whole.in_backward.exposed_seconds < 0.35 * whole.in_backward.seconds);
}
