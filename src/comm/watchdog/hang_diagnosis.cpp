// SPDX-License-Identifier: Apache-2.0
#include "comm/watchdog/hang_diagnosis.hpp"

#include "trireme/base/format.hpp"

#include <algorithm>
#include <cstring>

namespace trireme::comm {
namespace {

/// Tags on the control communicator, beside that of failure messages (watchdog.cpp).
constexpr int query_tag = 32001;
constexpr int reply_tag = 32002;
constexpr std::size_t most_awaited = 8;
/// Number of ranks of a node that are queried about one of them.
constexpr std::size_t most_observers = 4;

std::string list_of(const std::vector<std::string>& items) {
  return base::format("{}", base::join(items, ", "));
}

}  // namespace

struct HangDiagnosis::StatusMessage {
  std::int32_t number = 0;
  std::int32_t subject = -1;
  std::int32_t state = 0;
  std::int32_t awaited_count = 0;
  std::array<std::int32_t, most_awaited> awaited{};
  std::array<char, 256> text{};
};

HangDiagnosis::HangDiagnosis(const World& world, MPI_Comm control, StatusOf status_of)
    : world_(world), control_(control), status_of_(std::move(status_of)) {}

template <typename T>
void HangDiagnosis::send(const T& message, int to, int tag) {
  auto& out = outgoing_.emplace_back();
  out.bytes.resize(sizeof message);
  std::memcpy(out.bytes.data(), &message, sizeof message);
  out.request = mpi::isend(out.bytes.data(), sizeof message, to, tag, control_);
}

void HangDiagnosis::reply() {
  std::erase_if(outgoing_, [](Outgoing& out) { return mpi::test(out.request, nullptr); });
  while (const auto source = mpi::probe(query_tag, control_)) {
    StatusMessage message;
    auto request = mpi::ireceive(&message, sizeof message, *source, query_tag, control_);
    while (!mpi::test(request, nullptr)) {
    }
    const auto status = status_of_(base::Rank(message.subject));
    message.state = static_cast<std::int32_t>(status.state);
    const auto count = std::min(status.awaited.size(), most_awaited);
    message.awaited_count = static_cast<std::int32_t>(count);
    for (std::size_t i = 0; i < count; ++i) message.awaited[i] = status.awaited[i].value();
    std::copy_n(status.text.begin(), std::min(status.text.size(), message.text.size() - 1),
                message.text.begin());
    send(message, *source, reply_tag);
  }
}

void HangDiagnosis::start(const std::vector<base::Rank>& missing, std::string operation) {
  ++number_;
  missing_ = missing;
  operation_ = std::move(operation);
  statuses_.clear();
  replied_ = {world_.leader(world_.self)};
  for (const auto rank : missing_) query(rank);
  // A rank that reaches no other node is cut off itself.
  for (const int leader : world_.nodes()) {
    if (leader != world_.leader(world_.self)) query(base::Rank(leader));
  }
}

void HangDiagnosis::query(base::Rank subject) {
  if (statuses_.contains(subject)) return;
  statuses_[subject] = {};
  if (world_.is_neighbour(subject)) {
    record(subject, status_of_(subject));
    return;
  }
  StatusMessage message;
  message.number = number_;
  message.subject = subject.value();
  auto observers = world_.ranks_of(world_.leader(subject));
  // Observers: the rank itself, and some of its neighbours, which can read its status page.
  std::partition(observers.begin(), observers.end(),
                 [&](base::Rank rank) { return rank == subject; });
  observers.resize(std::min(observers.size(), most_observers));
  for (const auto observer : observers) send(message, observer.value(), query_tag);
}

void HangDiagnosis::record(base::Rank subject, const RankStatus& status) {
  auto& known = statuses_[subject];
  // Observers may have looked at different times: a rank that waits now has come since.
  if (status.state >= known.state) known = status;
  if (status.state != RankStatus::State::waiting) return;
  for (const auto rank : status.awaited) query(rank);
}

void HangDiagnosis::take_replies() {
  while (const auto source = mpi::probe(reply_tag, control_)) {
    StatusMessage message;
    auto request = mpi::ireceive(&message, sizeof message, *source, reply_tag, control_);
    while (!mpi::test(request, nullptr)) {
    }
    if (message.number != number_) continue;
    replied_.insert(world_.leaders[static_cast<std::size_t>(*source)]);
    RankStatus status;
    status.state = static_cast<RankStatus::State>(message.state);
    for (int i = 0; i < message.awaited_count; ++i) {
      status.awaited.emplace_back(message.awaited[static_cast<std::size_t>(i)]);
    }
    status.text = {message.text.data(), ::strnlen(message.text.data(), message.text.size())};
    record(base::Rank(message.subject), status);
  }
}

bool HangDiagnosis::complete() {
  reply();
  take_replies();
  // States can still change: a computing rank may begin to wait, and a silent one may reply.
  return std::all_of(statuses_.begin(), statuses_.end(), [](const auto& one) {
    return one.second.state >= RankStatus::State::waiting;
  });
}

std::vector<base::Rank> HangDiagnosis::root_causes() const {
  // All have come, but the operation does not end: the cause is this rank's own device.
  if (missing_.empty()) return {world_.self};
  std::vector<base::Rank> found;
  std::set<base::Rank> visited;
  for (auto open = missing_; !open.empty();) {
    const auto rank = open.back();
    open.pop_back();
    const auto known = statuses_.find(rank);
    if (known == statuses_.end() || !visited.insert(rank).second) continue;
    if (known->second.state == RankStatus::State::waiting) {
      open.insert(open.end(), known->second.awaited.begin(), known->second.awaited.end());
    } else if (rank != world_.self) {
      found.push_back(rank);
    }
  }
  // Certain findings explain more than uncertain ones.
  for (const auto state :
       {RankStatus::State::halted, RankStatus::State::silent, RankStatus::State::computing}) {
    std::vector<base::Rank> alike;
    std::copy_if(found.begin(), found.end(), std::back_inserter(alike),
                 [&](base::Rank rank) { return statuses_.at(rank).state == state; });
    if (!alike.empty()) return alike;
  }
  return cyclic_waiters();
}

std::vector<base::Rank> HangDiagnosis::cyclic_waiters() const {
  // Ranks that wait in the same operation have come to it: those that relay wait for others in it,
  // and where an operation cannot name the ranks that it waits for, all others count as missing.
  std::vector<base::Rank> elsewhere;
  std::set<base::Rank> visited{world_.self};
  for (auto open = missing_; !open.empty();) {
    const auto rank = open.back();
    open.pop_back();
    if (!visited.insert(rank).second) continue;
    const auto known = statuses_.find(rank);
    if (known == statuses_.end() || known->second.text.find(operation_) == std::string::npos) {
      elsewhere.push_back(rank);
    } else {
      open.insert(open.end(), known->second.awaited.begin(), known->second.awaited.end());
    }
  }
  return elsewhere.empty() ? missing_ : elsewhere;
}

std::vector<int> HangDiagnosis::silent_nodes() const {
  auto silent = world_.nodes();
  std::erase_if(silent, [&](int leader) { return replied_.contains(leader); });
  return silent;
}

bool HangDiagnosis::is_cut_off(const std::vector<int>& silent) const {
  const auto all = world_.nodes();
  const auto heard = all.size() - silent.size();
  // Tie of two equal parts: the one with rank 0 counts as the rest, so that both decide alike.
  return silent.size() > heard || (silent.size() == heard && silent.front() == all.front());
}

HangReport HangDiagnosis::report_on(std::vector<base::Rank> ranks) const {
  std::sort(ranks.begin(), ranks.end());
  HangReport result;
  for (const auto rank : ranks) {
    const auto known = statuses_.find(rank);
    const bool has_text = known != statuses_.end() && !known->second.text.empty();
    result.texts.push_back(has_text ? known->second.text : world_.text(rank));
  }
  result.ranks = std::move(ranks);
  return result;
}

HangReport HangDiagnosis::report_own_side(const std::vector<int>& silent) const {
  std::vector<base::Rank> ranks;
  std::vector<std::string> here;
  std::vector<std::string> there;
  for (const int leader : world_.nodes()) {
    const bool far = std::find(silent.begin(), silent.end(), leader) != silent.end();
    (far ? there : here).push_back(world_.hosts[static_cast<std::size_t>(leader)]);
    if (far) continue;
    for (const auto rank : world_.ranks_of(leader)) ranks.push_back(rank);
  }
  auto result = report_on(std::move(ranks));
  result.cut_off = base::format("{} {} cut off: no rank of {} answers", list_of(here),
                                here.size() == 1 ? "is" : "are", list_of(there));
  return result;
}

HangReport HangDiagnosis::report() const {
  const auto ranks = root_causes();
  const auto known = statuses_.find(ranks.front());
  const auto silent = silent_nodes();
  const bool alone = known == statuses_.end() || known->second.state == RankStatus::State::silent;
  if (!alone || silent.empty()) return report_on(ranks);
  if (is_cut_off(silent)) return report_own_side(silent);
  // All ranks of a node from which nothing is received are missing; all nodes then name the same
  // ranks.
  std::set<base::Rank> all(ranks.begin(), ranks.end());
  std::vector<std::string> names;
  for (const int leader : silent) {
    const auto of_node = world_.ranks_of(leader);
    const bool suspected = std::any_of(of_node.begin(), of_node.end(),
                                       [&](base::Rank rank) { return all.contains(rank); });
    if (!suspected) continue;
    all.insert(of_node.begin(), of_node.end());
    names.push_back(world_.hosts[static_cast<std::size_t>(leader)]);
  }
  auto result = report_on({all.begin(), all.end()});
  if (!names.empty()) {
    result.cut_off =
        base::format("{} {} down or cut off: none of {} ranks answers", list_of(names),
                     names.size() == 1 ? "is" : "are", names.size() == 1 ? "its" : "their");
  }
  return result;
}

}  // namespace trireme::comm
