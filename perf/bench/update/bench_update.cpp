// SPDX-License-Identifier: Apache-2.0
// usage: mpirun -n RANKS bench_update [DIVISOR [LAYERS [ROUNDS]]]
// The optimizer's step of data-parallel ranks at ZeRO level 1 over the matrices of layers: Muon
// with owners by several plans, and AdamW, turn about, on Qwen3-32B's shape with sides divided by
// DIVISOR and so many LAYERS. Two layers on 8 ranks have the work of 64 on 256. Each step reduces
// gradients to their owners, updates, and gathers parameters. Processor time of each rank's thread
// in the update alone does not depend on how many cores the ranks share; wall time does. Beside
// them what the counted FLOPs take at the rate of a plain product, in processor time of the same
// rounds.
#include "trireme/base/format.hpp"
#include "trireme/base/philox.hpp"
#include "trireme/comm/mpi_runtime.hpp"
#include "trireme/device/kernels.hpp"
#include "trireme/model/owned_tensors.hpp"
#include "trireme/optim/matrix_rule.hpp"
#include "trireme/optim/optimizer.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <string>
#include <vector>

namespace {

using namespace trireme;
using device::Tensor;

struct Settings {
  int divisor = 8;
  int layers = 2;
  int rounds = 7;
};

/// Processor time of this thread.
double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void fill(const Tensor& values, std::uint64_t stream) {
  for (std::int64_t at = 0; at < values.element_count(); ++at) {
    const auto word = base::philox(7, stream, static_cast<std::uint64_t>(at))[0];
    values.f32()[at] = static_cast<float>(word) * 0x1p-32F - 0.5F;
  }
}

model::ModelConfig shape_of(const Settings& settings) {
  model::ModelConfig config;
  config.architecture = model::Architecture::qwen3;
  config.vocab_size = 64;
  config.hidden_size = 5120 / settings.divisor;
  config.intermediate_size = 25600 / settings.divisor;
  config.num_hidden_layers = settings.layers;
  config.num_attention_heads = 64 / settings.divisor;
  config.num_key_value_heads = std::max(1, 8 / settings.divisor);
  config.head_dim = 128;
  return config;
}

/// A matrix where a plan puts it.
struct Placed {
  layout::FlatRange flat{};
  ownership::MatrixShape shape;
};

/// Ranges of one flat buffer, their division among ranks, and the matrices in them.
struct Plan {
  std::string name;
  std::vector<ownership::PlannedBucket> buckets;
  std::vector<Placed> matrices;

  std::int64_t size() const { return buckets.back().flat.end; }
};

/// Matrices of layers, in the order of backward.
std::vector<ownership::OwnedTensor> matrices_of(const model::ModelConfig& config,
                                                const optim::MatrixRule& rule) {
  auto tensors = model::owned_tensors(config, 1, [&](const ownership::MatrixShape& shape) {
    return model::MatrixCost{rule.flops(shape), {}};
  });
  std::erase_if(tensors, [](const ownership::OwnedTensor& tensor) { return !tensor.is_matrix(); });
  return tensors;
}

Plan plan_of(const std::vector<ownership::OwnedTensor>& tensors,
             const ownership::PlanOptions& options, ownership::Assignment assignment) {
  const auto owned = ownership::make_plan(tensors, options, assignment);
  Plan plan{std::string(ownership::name(assignment)), owned.buckets, {}};
  for (const auto& [tensor, begin, end, flat_begin] : owned.pieces) {
    plan.matrices.push_back({{flat_begin, flat_begin + end}, tensors[tensor].shape});
  }
  return plan;
}

/// Own implementation of Canzona's plan (arXiv 2602.06079) as its code has it: q, k, v and gate, up
/// are one tensor each, and cuts follow elements.
Plan plan_of_canzona(const std::vector<ownership::OwnedTensor>& tensors,
                     const ownership::PlanOptions& options) {
  std::vector<ownership::OwnedTensor> fused;
  std::vector<std::vector<ownership::MatrixShape>> shapes;
  for (const auto& tensor : tensors) {
    if (!tensor.joined) {
      fused.push_back(tensor);
      fused.back().held_elements = 0;
      shapes.emplace_back();
    }
    fused.back().held_elements += tensor.held_elements;
    fused.back().flops = static_cast<double>(fused.back().held_elements);
    shapes.back().push_back(tensor.shape);
  }
  auto cuts = options;
  cuts.order = ownership::BucketOrder::of_backward;
  const auto owned = ownership::make_plan(fused, cuts, ownership::Assignment::contiguous);
  Plan plan{"Canzona", owned.buckets, {}};
  for (const auto& piece : owned.pieces) {
    auto begin = piece.flat_begin;
    for (const auto& shape : shapes[piece.tensor]) {
      plan.matrices.push_back({{begin, begin + shape.rows * shape.columns}, shape});
      begin = plan.matrices.back().flat.end;
    }
  }
  return plan;
}

/// One way to update, with the times of this rank.
class Way {
 public:
  Way(Plan plan, const optim::Rule& rule, comm::ProcessGroup& data)
      : plan_(std::move(plan)),
        data_(data),
        arena_(device::Arena::host(device::Purpose::optimizer, bytes_needed())),
        gradients_(arena_.allocate(device::DType::f32, {plan_.size()})),
        parameters_(arena_.allocate(device::DType::f32, {plan_.size()})),
        workspace_(device::Arena::host(device::Purpose::workspace, std::size_t{1} << 30)),
        optimizer_(rule, segments(rule), sizes_, parameters_, arena_) {
    fill(gradients_, static_cast<std::uint64_t>(data.rank()));
    fill(parameters_, 99);
  }

  void step(device::Kernels& kernels, int number) {
    data_.barrier();
    const double wall_begin = wall_seconds();
    exchange(gradients_, true);
    const double begin = processor_seconds();
    optimizer_.update(kernels, workspace_, gradients_, 1e-3F, 1.0F, number);
    processor.push_back(processor_seconds() - begin);
    exchange(parameters_, false);
    data_.barrier();
    wall.push_back(wall_seconds() - wall_begin);
  }

  const std::string& name() const { return plan_.name; }
  /// FLOPs of the matrices that this rank owns.
  double flops = 0;
  std::vector<double> processor;
  std::vector<double> wall;

 private:
  std::size_t bytes_needed() const {
    return static_cast<std::size_t>(plan_.size()) * 4 * sizeof(float) + (std::size_t{1} << 20);
  }

  /// Sums to owners, or owners' parts to all.
  void exchange(const Tensor& flat, bool reduces) {
    std::vector<comm::Work> works;
    for (const auto& [range, cuts] : plan_.buckets) {
      comm::Cuts own = cuts;
      for (auto& cut : own) cut -= range.begin;
      const auto self = static_cast<std::size_t>(data_.rank());
      const auto whole = flat.slice(0, range.begin, range.size());
      const auto part = whole.slice(0, own[self], own[self + 1] - own[self]);
      works.push_back(reduces ? data_.start_reduce_scatter(whole, part, own)
                              : data_.start_all_gather(part, whole, own));
    }
    for (auto& work : works) work.wait();
  }

  std::vector<optim::Segment> segments(const optim::Rule& rule) {
    const bool by_matrix = optim::traits(rule.kind).updates_matrices;
    const auto matrix_rule = optim::make_matrix_rule(rule, device::DType::f32);
    std::vector<optim::Segment> all;
    for (const auto& [range, cuts] : plan_.buckets) {
      const auto self = static_cast<std::size_t>(data_.rank());
      const layout::FlatRange shard{cuts[self], cuts[self + 1]};
      if (!by_matrix) {
        all.push_back({.flat = shard, .state_begin = sizes_.elements});
        sizes_.elements += shard.size();
        continue;
      }
      for (const auto& [flat, shape] : plan_.matrices) {
        if (flat.begin < shard.begin || flat.end > shard.end) continue;
        all.push_back({.flat = flat,
                       .state_begin = sizes_.matrices,
                       .content = optim::Content::matrix,
                       .shape = shape});
        sizes_.matrices += flat.size();
        flops += matrix_rule->flops(shape);
      }
    }
    return all;
  }

  Plan plan_;
  comm::ProcessGroup& data_;
  device::Arena arena_;
  Tensor gradients_;
  Tensor parameters_;
  device::Arena workspace_;
  optim::StateSizes sizes_;
  optim::Optimizer optimizer_;
};

/// A plain product [side, length] x [length, side], in processor time.
class Product {
 public:
  Product(std::int64_t side, std::int64_t length)
      : arena_(device::Arena::host(device::Purpose::workspace,
                                   static_cast<std::size_t>(side * (length + side)) * 8)),
        x_(arena_.allocate(device::DType::f32, {side, length})),
        out_(arena_.allocate(device::DType::f32, {side, side})),
        operations_(2.0 * static_cast<double>(side) * static_cast<double>(side) *
                    static_cast<double>(length)) {
    fill(x_, 3);
  }
  void run(device::Kernels& kernels) {
    const double begin = processor_seconds();
    for (int again = 0; again < repeats; ++again) {
      kernels.issue(device::LinearForward{x_, x_, {}, out_});
    }
    seconds_.push_back((processor_seconds() - begin) / repeats);
  }
  double rate() const { return operations_ / median(seconds_); }

 private:
  static constexpr int repeats = 8;
  device::Arena arena_;
  Tensor x_;
  Tensor out_;
  double operations_;
  std::vector<double> seconds_;
};

/// Largest and mean over the ranks; the same on all.
std::pair<double, double> over_ranks(comm::ProcessGroup& world, double own) {
  auto largest = static_cast<float>(own);
  auto sum = largest;
  world.all_reduce({&largest, device::DType::f32, {1}}, comm::ReduceOp::max);
  world.all_reduce({&sum, device::DType::f32, {1}});
  return {largest, static_cast<double>(sum) / world.size()};
}

std::vector<std::unique_ptr<Way>> ways_of(const Settings& settings, comm::ProcessGroup& data) {
  optim::Rule rule;
  rule.kind = optim::RuleKind::muon;
  const auto matrix_rule = optim::make_matrix_rule(rule, device::DType::f32);
  const auto tensors = matrices_of(shape_of(settings), *matrix_rule);
  ownership::PlanOptions options{.data = data.size()};
  // In the proportion that the whole model has with buckets of this size.
  options.bucket_elements /= std::int64_t{settings.divisor} * settings.divisor;
  auto adamw = plan_of(tensors, options, ownership::Assignment::padded);
  adamw.name = "AdamW";
  std::vector<std::unique_ptr<Way>> ways;
  for (const auto assignment : {ownership::Assignment::padded, ownership::Assignment::contiguous}) {
    ways.push_back(std::make_unique<Way>(plan_of(tensors, options, assignment), rule, data));
  }
  ways.push_back(std::make_unique<Way>(plan_of_canzona(tensors, options), rule, data));
  ways.push_back(std::make_unique<Way>(std::move(adamw), optim::Rule{}, data));
  return ways;
}

void run(const Settings& settings, comm::MpiRuntime& mpi) {
  const auto kernels = device::make_cpu_kernels(1);
  const auto world = mpi.make_world();
  const auto ways = ways_of(settings, *world);
  const auto config = shape_of(settings);
  Product product(config.hidden_size, config.intermediate_size);
  for (int round = 0; round <= settings.rounds; ++round) {
    for (const auto& way : ways) {
      way->step(*kernels, round + 1);
      // The first touches memory.
      if (round == 0) way->processor.clear(), way->wall.clear();
    }
    world->barrier();
    product.run(*kernels);
  }
  const double rate = over_ranks(*world, product.rate()).second;
  auto text = base::format(
      "{} ranks, hidden {}, intermediate {}, {} layers; {:.1f} GFLOP/s in plain fp32 products\n"
      "            processor ms    mean   wall ms  counted GFLOP  over mean  ms of them\n",
      world->size(), config.hidden_size, config.intermediate_size, settings.layers, rate / 1e9);
  std::vector<double> busiest;
  std::vector<double> counted;
  for (const auto& way : ways) {
    const auto [most, mean] = over_ranks(*world, median(way->processor));
    const auto wall = over_ranks(*world, median(way->wall)).first;
    const auto [most_flops, mean_flops] = over_ranks(*world, way->flops);
    busiest.push_back(most);
    counted.push_back(most_flops / rate);
    text += base::format("{:<12} {:11.1f} {:7.1f} {:9.1f} {:14.2f} {:10.3f} {:11.1f}\n",
                         way->name(), most * 1e3, mean * 1e3, wall * 1e3, most_flops / 1e9,
                         mean_flops > 0 ? most_flops / mean_flops : 1.0, counted.back() * 1e3);
  }
  const double growth = busiest.front() - busiest.back();
  text += base::format(
      "busiest rank, over padded: contiguous {:.2f}, Canzona {:.2f}; padded beyond AdamW {:.1f} "
      "ms, {:.2f} of what its FLOPs take in plain products\n",
      busiest[1] / busiest[0], busiest[2] / busiest[0], growth * 1e3, growth / counted.front());
  if (mpi.world_rank() == base::Rank{0}) std::cout << text;
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  if (argc > 1) settings.divisor = std::atoi(argv[1]);
  if (argc > 2) settings.layers = std::atoi(argv[2]);
  if (argc > 3) settings.rounds = std::atoi(argv[3]);
  if (settings.divisor < 1 || 64 % settings.divisor != 0 || settings.layers < 1 ||
      settings.rounds < 1) {
    std::cerr << "usage: mpirun -n RANKS bench_update [DIVISOR of 64 [LAYERS [ROUNDS]]]\n";
    return 2;
  }
  comm::MpiRuntime mpi;
  run(settings, mpi);
  return 0;
}
