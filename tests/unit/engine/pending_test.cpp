// SPDX-License-Identifier: Apache-2.0
// Collectives of tensor-parallel ranks under way: a simulated GPU finds who reads before the join,
// who writes what is being sent, and who gives memory back too early.
#include "layers/tensor_parallel.hpp"
#include "support/device/watched_group.hpp"
#include "support/simulated_gpu/device.hpp"

#include <catch2/catch.hpp>

using namespace trireme;
using namespace trireme::testing;
using Catch::Matchers::Contains;
using device::DType;
using device::Tensor;

namespace {

constexpr std::int64_t row_count = 8;
constexpr std::int64_t width = 4;

/// One of two ranks, each of which has half of the rows.
struct Rank {
  explicit Rank(model::SequenceParallel sequence) {
    config.hidden_size = width;
    context.sequence_parallel = sequence;
  }

  Tensor local() { return context.stream(workspace); }
  Tensor room() { return workspace.allocate(DType::f32, {row_count, width}); }
  void read(const Tensor& x) { kernels.issue(device::Copy{x, copy_of(x)}); }
  void write(const Tensor& x) { kernels.issue(device::Fill{x, 1.0F}); }

  Tensor copy_of(const Tensor& x) { return beside.allocate(x.dtype(), {x.dim(0), x.dim(1)}); }

  SimulatedKernels kernels{device::make_reference_kernels()};
  device::Arena workspace = kernels.device().arena(device::Purpose::workspace, 4096);
  device::Arena beside = kernels.device().arena(device::Purpose::activations, 4096);
  std::unique_ptr<comm::ProcessGroup> group =
      watched_on(kernels.device(), comm::make_dry_run_group("tp", {base::Rank{0}, base::Rank{1}}, 0,
                                                            comm::DryRunData::untouched));
  model::ModelConfig config;
  layers::StageContext context{config, kernels, *group, workspace, DType::f32, 1, row_count};
};

}  // namespace

TEST_CASE("rows that are gathered are not read before the join") {
  Rank rank(model::SequenceParallel::on);
  auto pending = layers::start_gather_rows(rank.context, rank.local(), rank.room());
  CHECK_THROWS_WITH(rank.read(pending.rows),
                    Contains("copy reads from (f32 [8, 4]), which all_gather under way writes"));
  rank.read(pending.join());
}

TEST_CASE("what is being sent is not written before the join, but may be read") {
  Rank rank(model::SequenceParallel::on);
  const auto local = rank.local();
  auto pending = layers::start_gather_rows(rank.context, local, rank.room());
  rank.read(local);
  CHECK_THROWS_WITH(rank.write(local), Contains("writes x (f32 [4, 4]), which all_gather"));
  CHECK_THROWS_WITH(rank.write(local.slice(0, 3, 1)), Contains("under way reads"));
  pending.join();
  rank.write(local);
}

TEST_CASE("terms of a sum stay, and the sum is not there, until the join") {
  const auto sequence = GENERATE(model::SequenceParallel::on, model::SequenceParallel::off);
  Rank rank(sequence);
  const auto local = rank.local();
  const auto terms = layers::terms_of(rank.context, local);
  auto sum = layers::start_sum_rows(rank.context, terms, local);
  CHECK_THROWS_AS(rank.write(terms), std::logic_error);
  CHECK_THROWS_WITH(rank.read(local), Contains("under way writes"));
  sum.join();
  rank.read(local);
  rank.write(terms);
}

TEST_CASE("the workspace gives nothing back that a collective under way works in") {
  Rank rank(model::SequenceParallel::on);
  const auto local = rank.local();
  const auto mark = rank.workspace.mark();
  auto pending = layers::start_gather_rows(rank.context, local, rank.room());
  const auto above = rank.workspace.mark();
  rank.room();
  rank.workspace.release(above);
  CHECK_THROWS_WITH(rank.workspace.release(mark),
                    Contains("memory for workspace is released while something under way"));
  pending.join();
  rank.workspace.release(mark);
  // Once more to nothing: it was joined.
  pending.join();
}
