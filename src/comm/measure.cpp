#include "trireme/comm/measure.hpp"

#include "trireme/base/format.hpp"
#include "trireme/base/suggest.hpp"
#include "trireme/device/arena.hpp"

#include <algorithm>
#include <array>
#include <chrono>

namespace trireme::comm {
namespace {

using device::DType;
using device::Tensor;

constexpr std::array all_collectives{Collective::all_reduce, Collective::reduce_scatter,
                                     Collective::all_gather, Collective::all_to_all,
                                     Collective::broadcast,  Collective::ring};
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

/// The arrays of one rank; every page is touched before anything is timed.
struct Arrays {
  explicit Arrays(std::int64_t elements)
      : arena(device::Arena::host(device::Purpose::communication,
                                  2 * static_cast<std::size_t>(elements) * 4 + 256)),
        whole(arena.allocate(DType::f32, {elements})),
        other(arena.allocate(DType::f32, {elements})) {
    std::fill_n(whole.f32(), elements, 1.0F);
    std::fill_n(other.f32(), elements, 1.0F);
  }
  device::Arena arena;
  Tensor whole;
  Tensor other;
};

void perform(ProcessGroup& group, Collective collective, const Arrays& arrays) {
  const auto part = arrays.other.slice(0, 0, arrays.whole.element_count() / group.size());
  switch (collective) {
    case Collective::all_reduce:
      // A maximum would keep numbers small, but sums are what training needs.
      return group.all_reduce(arrays.whole);
    case Collective::reduce_scatter:
      return group.reduce_scatter(arrays.whole, part);
    case Collective::all_gather:
      return group.all_gather(part, arrays.whole);
    case Collective::all_to_all:
      return group.all_to_all(arrays.whole, arrays.other);
    case Collective::broadcast:
      return group.broadcast(arrays.whole, 0);
    case Collective::ring: {
      auto receive =
          group.start_receive(arrays.other, (group.rank() + group.size() - 1) % group.size(), 0);
      auto send = group.start_send(arrays.whole, (group.rank() + 1) % group.size(), 0);
      receive.wait();
      return send.wait();
    }
  }
}

/// Of the slowest rank.
double time_once(ProcessGroup& group, Collective collective, const Arrays& arrays) {
  group.barrier();
  const auto begin = std::chrono::steady_clock::now();
  perform(group, collective, arrays);
  const std::chrono::duration<float> own = std::chrono::steady_clock::now() - begin;
  float slowest = own.count();
  group.all_reduce({&slowest, DType::f32, {1}}, ReduceOp::max);
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
    case Collective::ring:
      return "ring";
  }
  return "?";
}

base::Result<Collective> collective_named(std::string_view name) {
  return named("collective", name, all_collectives);
}

base::Result<Backend> backend_named(std::string_view name) {
  return named("backend", name, all_backends);
}

std::vector<Measurement> measure(MpiRuntime& mpi, const MeasureOptions& options) {
  const auto ranks = static_cast<std::size_t>(mpi.world_size());
  const auto elements = static_cast<std::int64_t>(options.bytes / 4 / ranks * ranks);
  const Arrays arrays(elements);
  std::vector<std::unique_ptr<ProcessGroup>> groups;
  for (const auto backend : options.backends) {
    groups.push_back(mpi.make_world({backend, options.timeout_seconds}));
  }
  std::vector<std::vector<double>> seconds(groups.size());
  for (int repeat = -2; repeat < options.repeats; ++repeat) {
    for (std::size_t i = 0; i < groups.size(); ++i) {
      // Sums must not run away: adding zeros costs what adding anything costs.
      std::fill_n(arrays.whole.f32(), elements, 0.0F);
      const auto spent = time_once(*groups[i], options.collective, arrays);
      if (repeat >= 0) seconds[i].push_back(spent);
    }
  }
  std::vector<Measurement> results;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    auto& times = seconds[i];
    std::sort(times.begin(), times.end());
    results.push_back({options.collective, options.backends[i], mpi.world_size(),
                       static_cast<std::size_t>(elements) * 4, times[times.size() / 2],
                       times.front()});
  }
  return results;
}

}  // namespace trireme::comm
