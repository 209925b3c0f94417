// SPDX-License-Identifier: Apache-2.0
#include "train/rank_times_recorder.hpp"

#include "trireme/base/contract.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/log.hpp"
#include "trireme/comm/bytes.hpp"
#include "trireme/comm/mpi_runtime.hpp"
#include "trireme/telemetry/cores_use.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace trireme::train {
namespace {

constexpr std::chrono::seconds interval{30};
constexpr std::int64_t first_steps = 2;

}  // namespace

struct RankTimesRecorder::Message {
  /// Time of a step, at most half an hour.
  std::uint32_t microseconds = 0;
  std::uint32_t node = 0;
  telemetry::ProcessorShares processors = {};

  std::string bytes() const {
    const std::array<std::uint32_t, 2> head{microseconds, node};
    return std::string(reinterpret_cast<const char*>(head.data()), sizeof head) +
           telemetry::packed(processors);
  }
  static Message of(std::string_view bytes) {
    std::array<std::uint32_t, 2> head{};
    TRIREME_ENSURE(bytes.size() >= sizeof head, "every rank sends its time and its node");
    std::memcpy(head.data(), bytes.data(), sizeof head);
    return {head[0], head[1], telemetry::unpacked(bytes.substr(sizeof head))};
  }
};

RankTimesRecorder::RankTimesRecorder(const runtime::Cluster& cluster, std::filesystem::path run)
    : cluster_(cluster),
      run_(std::move(run)),
      is_first_(cluster.mpi == nullptr || cluster.mpi->local_rank().value() == 0),
      processors_(is_first_ ? telemetry::ProcessorMeter::Reads::node_too
                            : telemetry::ProcessorMeter::Reads::own) {}

void RankTimesRecorder::add(const StepRecord& record) {
  // It makes what later ones find: kernels, connections, caches.
  const bool is_first = last_step_ == 0;
  last_step_ = record.step;
  if (is_first) {
    processors_.begin();
    return;
  }
  seconds_ += record.computing_seconds();
  ++steps_;
}

bool RankTimesRecorder::are_due() const {
  if (recorded_ == Clock::time_point{}) return steps_ >= first_steps;
  return steps_ > 0 && Clock::now() - recorded_ >= interval;
}

void RankTimesRecorder::gather_places() {
  // The name of a node from one of its ranks.
  const auto name = is_first_ ? base::log::settings().identity.node : std::string();
  for (const auto& each :
       comm::gather_bytes(*cluster_.world, cluster_.binding.cpus + "\n" + name)) {
    const auto end = each.find('\n');
    cores_.push_back(telemetry::core_numbers(std::string_view(each).substr(0, end)));
    if (end + 1 < each.size()) nodes_.push_back(each.substr(end + 1));
  }
  knows_places_ = true;
}

void RankTimesRecorder::record(Report& report) {
  // The same on all ranks: they make the same steps.
  if (steps_ == 0) return;
  if (!knows_places_) gather_places();
  constexpr double most_microseconds = 2e9;
  const double microseconds = seconds_ / static_cast<double>(steps_) * 1e6;
  const Message own{
      static_cast<std::uint32_t>(std::clamp(microseconds, 0.0, most_microseconds)),
      cluster_.mpi == nullptr ? 0 : static_cast<std::uint32_t>(cluster_.mpi->node_rank().value()),
      processors_.take().value_or(telemetry::ProcessorShares{})};
  std::vector<Message> messages;
  for (const auto& each : comm::gather_bytes(*cluster_.world, own.bytes())) {
    messages.push_back(Message::of(each));
  }
  telemetry::RankTimes times{report.restart(), last_step_, steps_, {}};
  seconds_ = 0;
  steps_ = 0;
  recorded_ = Clock::now();
  if (cluster_.rank.value() != 0) return;
  for (std::size_t rank = 0; rank < messages.size(); ++rank) {
    const auto& [rank_microseconds, node, processors] = messages[rank];
    times.ranks.push_back({static_cast<int>(rank), node < nodes_.size() ? nodes_[node] : "",
                           rank_microseconds / 1e3});
  }
  write(times);
  report_cores(messages, report);
}

void RankTimesRecorder::write(const telemetry::RankTimes& times) {
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

void RankTimesRecorder::report_cores(const std::vector<Message>& messages, Report& report) const {
  std::vector<std::vector<telemetry::RankCores>> ranks(nodes_.size());
  std::vector<telemetry::ProcessorShares> shares(nodes_.size());
  std::vector<bool> is_whole(nodes_.size(), true);
  for (std::size_t rank = 0; rank < messages.size(); ++rank) {
    const auto& [microseconds, node, processors] = messages[rank];
    if (node >= nodes_.size()) continue;
    ranks[node].push_back({static_cast<int>(rank), cores_[rank], processors.own});
    if (!processors.cores.empty()) shares[node] = processors;
    // Time that it has used would count as others'.
    if (processors.seconds == 0) is_whole[node] = false;
  }
  std::vector<telemetry::CoresUse> uses;
  for (std::size_t node = 0; node < nodes_.size(); ++node) {
    if (!is_whole[node]) continue;
    const auto more = telemetry::uses_of(nodes_[node], ranks[node], shares[node]);
    uses.insert(uses.end(), more.begin(), more.end());
  }
  if (const auto* const use = telemetry::most_hindered(uses)) report.processors(last_step_, *use);
}

}  // namespace trireme::train
