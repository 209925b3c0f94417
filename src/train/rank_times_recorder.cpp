// SPDX-License-Identifier: Apache-2.0
#include "train/rank_times_recorder.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/log.hpp"
#include "trireme/comm/bytes.hpp"
#include "trireme/comm/mpi_runtime.hpp"
#include "trireme/telemetry/rank_times.hpp"

#include <algorithm>

namespace trireme::train {
namespace {

constexpr std::chrono::seconds interval{30};
constexpr std::int64_t first_steps = 2;

/// What a rank tells: its time in microseconds, at most half an hour, and its node.
constexpr std::size_t words_of_rank = 2;
constexpr double most_microseconds = 2e9;

}  // namespace

void RankTimesRecorder::add(const StepRecord& record) {
  // It makes what later ones find: kernels, connections, caches.
  const bool is_first = last_step_ == 0;
  last_step_ = record.step;
  if (is_first) return;
  seconds_ += record.computing_seconds();
  ++steps_;
}

bool RankTimesRecorder::are_due() const {
  if (recorded_ == Clock::time_point{}) return steps_ >= first_steps;
  return steps_ > 0 && Clock::now() - recorded_ >= interval;
}

void RankTimesRecorder::gather_nodes() {
  auto* const mpi = cluster_.mpi;
  const bool is_first = mpi == nullptr || mpi->local_rank().value() == 0;
  const auto name = is_first ? base::log::settings().identity.node : std::string();
  for (auto& each : comm::all_gather_bytes(*cluster_.world, name)) {
    if (!each.empty()) nodes_.push_back(std::move(each));
  }
}

void RankTimesRecorder::record(std::int64_t restart) {
  // The same on all ranks: they make the same steps.
  if (steps_ == 0) return;
  if (nodes_.empty()) gather_nodes();
  auto& world = *cluster_.world;
  const double microseconds = seconds_ / static_cast<double>(steps_) * 1e6;
  std::int32_t own[words_of_rank] = {
      static_cast<std::int32_t>(std::clamp(microseconds, 0.0, most_microseconds)),
      cluster_.mpi == nullptr ? 0 : cluster_.mpi->node_rank().value()};
  std::vector<std::int32_t> all(words_of_rank * static_cast<std::size_t>(world.size()));
  const auto count = static_cast<std::int64_t>(all.size());
  world.all_gather(device::Tensor(own, device::DType::i32, {words_of_rank}),
                   device::Tensor(all.data(), device::DType::i32, {count}));
  telemetry::RankTimes times{restart, last_step_, steps_, {}};
  seconds_ = 0;
  steps_ = 0;
  recorded_ = Clock::now();
  if (cluster_.rank.value() != 0) return;
  for (int rank = 0; rank < world.size(); ++rank) {
    const auto at = words_of_rank * static_cast<std::size_t>(rank);
    const auto node = static_cast<std::size_t>(all[at + 1]);
    times.ranks.push_back({rank, node < nodes_.size() ? nodes_[node] : "", all[at] / 1e3});
  }
  try {
    telemetry::write_rank_times(run_, times);
  } catch (const base::Error& error) {
    if (std::exchange(has_failed_, true)) return;
    base::log::warning("train",
                       "{} (training goes on, and trireme watch does not know the ranks' "
                       "times); make room",
                       error.what());
  }
}

}  // namespace trireme::train
