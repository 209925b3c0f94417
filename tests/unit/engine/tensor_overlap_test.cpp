// SPDX-License-Identifier: Apache-2.0
// Counts how much of tensor parallelism's collectives a layer hides: an engine's own operations on
// a timeline of two streams, at constants that are written here. The eight layers of the chunk are
// those of one of four stages of Llama-3 8B.
#include "trireme/comm/axis_groups.hpp"
#include "trireme/device/pricing.hpp"
#include "trireme/engine/engine.hpp"
#include "trireme/telemetry/spans.hpp"

#include "unit/model/published.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <vector>

using namespace trireme;
using namespace trireme::tests;
using layers::TensorOverlap;
using layout::Axis;
using model::SequenceParallel;
using telemetry::SpanKind;

namespace {

/// Products and memory of an H100 at work; bus bandwidth of NCCL's collectives among 8 of them.
constexpr device::KernelRates rates{650e12, 2.7e12, 0};
constexpr double bus_bytes_per_second = 370e9;
constexpr int layer_count = 8;
constexpr int tensor_degree = 8;

enum class Pass { forward, backward, elsewhere };
enum class Kind { gather, sum };

/// Collectives of a kind in a pass: how long they take, and how long the order of kernels stood
/// still.
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
  Collectives& of(Pass pass, Kind kind) {
    return collectives_[static_cast<std::size_t>(pass)][static_cast<std::size_t>(kind)];
  }
  Collectives of(Pass pass) {
    auto both = of(pass, Kind::gather);
    return both += of(pass, Kind::sum);
  }

  void begin(SpanKind kind, const telemetry::SpanPlace&, std::uint64_t) override {
    open_.push_back(kind);
  }
  void end() override { open_.pop_back(); }

  comm::Work start(Kind kind, double seconds) {
    auto& of_pass = of(pass(), kind);
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
    const auto is_open = [this](SpanKind kind) {
      return std::find(open_.begin(), open_.end(), kind) != open_.end();
    };
    if (is_open(SpanKind::layer_forward)) return Pass::forward;
    const bool is_backward =
        is_open(SpanKind::layer_backward_input) || is_open(SpanKind::layer_backward_weight);
    return is_backward ? Pass::backward : Pass::elsewhere;
  }

  double computed_ = 0;
  double waited_ = 0;
  double links_free_ = 0;
  std::vector<SpanKind> open_;
  std::array<std::array<Collectives, 2>, 3> collectives_{};
};

/// Pretended ranks of a tensor-parallel group, whose collectives take time. A ring that gathers or
/// sums equal parts moves all but a rank's own over each link; broadcasts and reductions, of which
/// unequal parts are made, move all.
class TimedGroup final : public comm::ProcessGroup {
 public:
  TimedGroup(const comm::ProcessGroup& like, Timeline& timeline)
      : ProcessGroup(like.name(), like.ranks(), like.rank()), timeline_(timeline) {}

  const char* backend() const override { return "dry-run"; }
  comm::Work start_all_reduce(const device::Tensor& x, comm::ReduceOp) override {
    return start(Kind::sum, x, 2, {});
  }
  comm::Work start_reduce_scatter(const device::Tensor& whole, const device::Tensor&,
                                  const comm::Cuts& cuts) override {
    return start(Kind::sum, whole, 1, cuts);
  }
  comm::Work start_all_gather(const device::Tensor&, const device::Tensor& whole,
                              const comm::Cuts& cuts) override {
    return start(Kind::gather, whole, 1, cuts);
  }
  comm::Work start_all_to_all(const device::Tensor&, const device::Tensor&) override { return {}; }
  comm::Work start_broadcast(const device::Tensor&, int) override { return {}; }
  comm::Work start_send(const device::Tensor&, int, int) override { return {}; }
  comm::Work start_receive(const device::Tensor&, int, int) override { return {}; }
  void barrier() override {}

 private:
  comm::Work start(Kind kind, const device::Tensor& whole, int passes, const comm::Cuts& cuts) {
    const double share = cuts.empty() ? (size() - 1.0) / size() : 1.0;
    const double moved = share * static_cast<double>(whole.byte_count());
    return timeline_.start(kind, passes * moved / bus_bytes_per_second);
  }

  Timeline& timeline_;
};

/// Two sequences, a chunk of eight layers.
engine::EngineOptions eight_billion_in_eight(SequenceParallel sequence, TensorOverlap overlap,
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

/// One micro-batch forward and backward.
void run_on(Timeline& timeline, const engine::EngineOptions& options) {
  auto groups = comm::make_dry_run_groups(options.sharding.mesh, options.sharding.rank,
                                          comm::DryRunData::untouched, {});
  for (auto& each : groups.all()) {
    if (each.members != comm::Members::all || each.axis != Axis::tensor) continue;
    each.group = std::make_unique<TimedGroup>(*each.group, timeline);
  }
  const auto kernels = device::make_pricing_kernels(rates, timeline.computed());
  auto memory = engine::Memory::measuring();
  engine::Engine engine(options, groups.views(), *kernels, memory);
  const telemetry::ObservedSpans observed(&timeline);
  engine.run_schedule();
}

void print(const char* what, const Collectives& all) {
  if (all.count == 0) return;
  std::printf("| %-28s | %2d | %.2f | %.2f | %.0f %% |\n", what, all.count / layer_count,
              1e3 * all.seconds / layer_count, 1e3 * all.exposed_seconds / layer_count,
              100 * all.hidden());
}

/// Collectives of a layer, their time and what is exposed of it, in ms, and what is hidden.
Collectives print_all(const char* what, Timeline& timeline) {
  std::printf("8B, tp8, %s; %.0f TFLOP/s, %.1f TB/s, links %.0f GB/s\n", what, rates.flops / 1e12,
              rates.memory_bytes / 1e12, bus_bytes_per_second / 1e9);
  auto all = timeline.of(Pass::forward);
  all += timeline.of(Pass::backward);
  print("forward, gathers", timeline.of(Pass::forward, Kind::gather));
  print("forward, sums", timeline.of(Pass::forward, Kind::sum));
  print("backward, gathers", timeline.of(Pass::backward, Kind::gather));
  print("backward, sums", timeline.of(Pass::backward, Kind::sum));
  print("both", all);
  return all;
}

}  // namespace

TEST_CASE("backward computes weights' gradients beside collectives: of 8B on 8 ranks, counted") {
  Timeline cut;
  run_on(cut, eight_billion_in_eight(SequenceParallel::on, TensorOverlap::plain));
  print_all("sequence parallel, 2 x 4096 rows at once", cut);
  auto backward = cut.of(Pass::backward);
  CHECK(backward.count == 6 * layer_count);
  // The gradient of the layer's output alone, which its first product reads.
  CHECK(backward.joined_at_start == layer_count);
  CHECK(backward.hidden() > 0.65);
  auto forward = cut.of(Pass::forward);
  CHECK(forward.count == 4 * layer_count);
  CHECK(forward.joined_at_start == forward.count);

  Timeline whole;
  run_on(whole, eight_billion_in_eight(SequenceParallel::off, TensorOverlap::plain));
  print_all("2 x 4096 rows at once", whole);
  backward = whole.of(Pass::backward);
  CHECK(backward.count == 2 * layer_count);
  CHECK(backward.joined_at_start == 0);
  CHECK(backward.hidden() > 0.65);
}

TEST_CASE("halves leave a fifth of collectives at most that nothing hides: of 8B on 8, counted") {
  Timeline cut;
  run_on(cut, eight_billion_in_eight(SequenceParallel::on, TensorOverlap::halves));
  const auto all_cut = print_all("sequence parallel, halves of 2 x 4096 rows", cut);
  auto forward = cut.of(Pass::forward);
  CHECK(forward.count == 8 * layer_count);
  // The first half's gather at the begin of the chunk, the second one's sum at its end.
  CHECK(forward.joined_at_start == 2);
  CHECK(forward.hidden() > 0.7);
  CHECK(cut.of(Pass::backward).count == 6 * layer_count);
  CHECK(cut.of(Pass::backward).hidden() > 0.9);
  CHECK(all_cut.hidden() > 0.8);

  Timeline whole;
  run_on(whole, eight_billion_in_eight(SequenceParallel::off, TensorOverlap::halves));
  const auto all_whole = print_all("halves of 2 x 4096 rows", whole);
  forward = whole.of(Pass::forward);
  CHECK(forward.count == 4 * layer_count);
  CHECK(forward.hidden() > 0.7);
  CHECK(all_whole.hidden() > 0.8);

  Timeline longer;
  run_on(longer, eight_billion_in_eight(SequenceParallel::on, TensorOverlap::halves, 8192));
  print_all("sequence parallel, halves of 2 x 8192 rows", longer);
}

TEST_CASE("halves are for GPUs, where their collectives take longer than starting more") {
  auto options = eight_billion_in_eight(SequenceParallel::on, TensorOverlap::plain);
  CHECK(engine::tensor_overlap_of(options) == TensorOverlap::plain);
  options.numerics.gpu_attention.emplace();
  CHECK(engine::tensor_overlap_of(options) == TensorOverlap::halves);
  auto other = options;
  other.sharding.mesh = layout::Mesh::of(1, 1, 1);
  CHECK(engine::tensor_overlap_of(other) == TensorOverlap::plain);
  // 35 us of a link of 370 GB/s: 1,581 rows of 4,096 numbers in bf16.
  other = options;
  other.schedule.sequence_length = 1580;
  CHECK(engine::tensor_overlap_of(other) == TensorOverlap::plain);
  other.schedule.sequence_length = 1581;
  CHECK(engine::tensor_overlap_of(other) == TensorOverlap::halves);
}
