// SPDX-License-Identifier: Apache-2.0
#include "trireme/comm/measure.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/suggest.hpp"
#include "trireme/device/arena.hpp"

#include "comm/core/exact_data.hpp"

#include <algorithm>
#include <array>
#include <chrono>

namespace trireme::comm {
namespace {

using device::DType;
using device::Tensor;

/// Rounds that are not counted: until every ring of shared memory has been filled once, whose
/// pages the system gives at the first touch; fewer where few are counted.
int warm_up_rounds(const MeasureOptions& options) {
  constexpr std::size_t largest_ring = std::size_t{2} << 20;
  const auto rounds = largest_ring / std::max<std::size_t>(options.bytes, 1);
  return 2 + static_cast<int>(
                 std::min(rounds, 20 * static_cast<std::size_t>(std::max(options.repeats, 0))));
}

constexpr std::array all_collectives{Collective::all_reduce, Collective::reduce_scatter,
                                     Collective::all_gather, Collective::all_to_all,
                                     Collective::broadcast,  Collective::send_receive};
constexpr std::array all_backends{Backend::automatic, Backend::mpi, Backend::shared,
                                  Backend::library};

template <typename T, std::size_t N>
base::Result<T> named(std::string_view what, std::string_view word, const std::array<T, N>& all) {
  std::vector<std::string> names;
  for (const auto each : all) {
    if (word == name(each)) return each;
    names.emplace_back(name(each));
  }
  return base::usage_failure(base::format("unknown {} '{}'{}; choose from {}", what, word,
                                          base::did_you_mean(word, names),
                                          base::join(names, ", ")));
}

/// Arrays of one rank for a collective, its inputs and its expected results.
class Trial {
 public:
  Trial(const MeasureOptions& options, device::Device& device, int rank, int ranks)
      : collective_(options.collective),
        rank_(rank),
        ranks_(ranks),
        part_elements_(part_elements(options, ranks)),
        device_(device),
        mirror_(device),
        arena_(device.arena(device::Purpose::communication, 2 * bytes(options, ranks) + 256)),
        whole_(arena_.allocate(options.dtype, {part_elements_ * ranks})),
        other_(arena_.allocate(options.dtype, {part_elements_ * ranks})),
        part_(other_.slice(0, 0, part_elements_)),
        host_whole_(mirror_.of(whole_)),
        host_other_(mirror_.of(other_)),
        host_part_(host_other_.slice(0, 0, part_elements_)) {}

  /// Size of the whole array.
  static std::size_t bytes(const MeasureOptions& options, int ranks) {
    return static_cast<std::size_t>(part_elements(options, ranks) * ranks) *
           device::size_of(options.dtype);
  }

  /// Inputs are written, places of results poisoned: every page has been touched.
  void prepare() {
    const auto own = ExactData::of_rank(rank_);
    const bool gathers = collective_ == Collective::all_gather;
    const bool receives_all = collective_ == Collective::broadcast && rank_ != 0;
    (gathers || receives_all ? ExactData::poison() : own).fill(host_whole_);
    (gathers ? own : ExactData::poison()).fill(host_other_);
    mirror_.store();
  }

  /// Runs the collective and waits for its results.
  void perform(ProcessGroup& group) const {
    begin(group);
    device_.synchronize();
  }

  /// Throws unless every result is the expected one.
  void check(const ProcessGroup& group) {
    mirror_.fetch();
    switch (collective_) {
      case Collective::all_reduce:
        return check(group, host_whole_, ExactData::sum_of(ranks_), 0);
      case Collective::reduce_scatter:
        return check(group, host_part_, ExactData::sum_of(ranks_), rank_ * part_elements_);
      case Collective::all_gather:
        for (int peer = 0; peer < ranks_; ++peer) {
          check(group, part_of(host_whole_, peer), ExactData::of_rank(peer), 0);
        }
        return;
      case Collective::all_to_all:
        for (int peer = 0; peer < ranks_; ++peer) {
          check(group, part_of(host_other_, peer), ExactData::of_rank(peer),
                rank_ * part_elements_);
        }
        return;
      case Collective::broadcast:
        return check(group, host_whole_, ExactData::of_rank(0), 0);
      case Collective::send_receive:
        return check(group, host_other_, ExactData::of_rank(before()), 0);
    }
  }

 private:
  void begin(ProcessGroup& group) const {
    switch (collective_) {
      case Collective::all_reduce:
        return group.all_reduce(whole_);
      case Collective::reduce_scatter:
        return group.reduce_scatter(whole_, part_);
      case Collective::all_gather:
        return group.all_gather(part_, whole_);
      case Collective::all_to_all:
        return group.all_to_all(whole_, other_);
      case Collective::broadcast:
        return group.broadcast(whole_, 0);
      case Collective::send_receive: {
        auto receive = group.start_receive(other_, before(), 0);
        auto send = group.start_send(whole_, (rank_ + 1) % ranks_, 0);
        receive.wait();
        return send.wait();
      }
    }
  }

  static std::int64_t part_elements(const MeasureOptions& options, int ranks) {
    const auto part = options.bytes / device::size_of(options.dtype) / static_cast<unsigned>(ranks);
    return static_cast<std::int64_t>(std::max<std::size_t>(1, part));
  }
  int before() const { return (rank_ + ranks_ - 1) % ranks_; }
  Tensor part_of(const Tensor& x, int position) const {
    return x.slice(0, position * part_elements_, part_elements_);
  }

  void check(const ProcessGroup& group, const Tensor& result, const ExactData& due,
             std::int64_t first) const {
    const auto difference = due.compare(result, first);
    if (!difference) return;
    throw base::Error(
        base::ExitCode::peer,
        base::format("{} over {} left {} at element {} of rank {} where {} is due (a collective "
                     "that is wrong makes training wrong); use another comm.backend, and report "
                     "this",
                     name(collective_), group.backend(), difference->found, difference->index,
                     rank_, difference->due));
  }

  Collective collective_;
  int rank_;
  int ranks_;
  std::int64_t part_elements_;
  device::Device& device_;
  device::HostMirror mirror_;
  device::Arena arena_;
  Tensor whole_;
  Tensor other_;
  Tensor part_;
  /// Host memory for inputs and for results that are checked.
  Tensor host_whole_;
  Tensor host_other_;
  Tensor host_part_;
};

/// Seconds of the slowest rank.
double time_once(ProcessGroup& meeting, ProcessGroup& group, const Trial& trial) {
  meeting.barrier();
  const auto begin = std::chrono::steady_clock::now();
  trial.perform(group);
  const std::chrono::duration<float> own = std::chrono::steady_clock::now() - begin;
  float slowest = own.count();
  meeting.all_reduce({&slowest, DType::f32, {1}}, ReduceOp::max);
  return static_cast<double>(slowest);
}

}  // namespace

const char* name(Collective collective) {
  switch (collective) {
    case Collective::all_reduce:
      return "all_reduce";
    case Collective::reduce_scatter:
      return "reduce_scatter";
    case Collective::all_gather:
      return "all_gather";
    case Collective::all_to_all:
      return "all_to_all";
    case Collective::broadcast:
      return "broadcast";
    case Collective::send_receive:
      return "send_receive";
  }
  return "?";
}

base::Result<Collective> collective_named(std::string_view name) {
  return named("collective", name, all_collectives);
}

base::Result<Backend> backend_named(std::string_view name) {
  return named("backend", name, all_backends);
}

double bus_factor(Collective collective, int ranks) {
  const double others = static_cast<double>(ranks - 1) / ranks;
  switch (collective) {
    case Collective::all_reduce:
      return 2 * others;
    case Collective::reduce_scatter:
    case Collective::all_gather:
    case Collective::all_to_all:
      return others;
    case Collective::broadcast:
    case Collective::send_receive:
      return 1;
  }
  return 0;
}

std::vector<Measurement> measure(ProcessGroup& meeting, device::Device& device,
                                 const std::vector<std::unique_ptr<ProcessGroup>>& groups,
                                 const MeasureOptions& options) {
  const int ranks = groups.front()->size();
  Trial trial(options, device, groups.front()->rank(), ranks);
  std::vector<std::vector<double>> seconds(groups.size());
  const int warm_up = warm_up_rounds(options);
  for (int repeat = -warm_up; repeat < options.repeats; ++repeat) {
    for (std::size_t turn = 0; turn < groups.size(); ++turn) {
      // Order of the groups rotates: none always follows the same other one, whose data is still
      // cached.
      const auto i = (turn + static_cast<std::size_t>(repeat + warm_up)) % groups.size();
      trial.prepare();
      const auto spent = time_once(meeting, *groups[i], trial);
      trial.check(*groups[i]);
      if (repeat >= 0) seconds[i].push_back(spent);
    }
  }
  std::vector<Measurement> results;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    auto& times = seconds[i];
    std::sort(times.begin(), times.end());
    results.push_back({options.collective, groups[i]->backend(), ranks,
                       Trial::bytes(options, ranks), times[times.size() / 2], times.front()});
  }
  return results;
}

std::vector<Measurement> measure(MpiRuntime& mpi, const MeasureOptions& options) {
  std::vector<std::unique_ptr<ProcessGroup>> groups;
  for (const auto backend : options.backends) {
    groups.push_back(mpi.make_world({backend, options.timeout_seconds}));
  }
  const auto meeting = mpi.make_world({Backend::automatic, options.timeout_seconds});
  return measure(*meeting, device::host_device(), groups, options);
}

}  // namespace trireme::comm
