#include "trireme/runtime/device_queues.hpp"

#include "trireme/base/format.hpp"

#include <charconv>
#include <cstdlib>

namespace trireme::runtime {
namespace {

constexpr const char* variable = "CUDA_DEVICE_MAX_CONNECTIONS";
/// What CUDA has at most, and without the variable.
constexpr int most_queues = 32;
constexpr int usual_queues = 8;

/// As CUDA takes it: nothing for what it would not.
std::optional<int> queues_in(const std::string& text) {
  int queues = 0;
  const auto* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, queues);
  if (read.ec != std::errc() || read.ptr != end || queues < 1 || queues > most_queues) return {};
  return queues;
}

}  // namespace

DeviceQueues device_queues(const base::Environment& environment) {
  const auto given = environment.get(variable);
  if (!given) {
    return {base::format("{}", most_queues),
            base::format("{}={} set: a rank has up to {} streams, which do not wait for each other "
                         "in queues of their own; set the variable yourself to choose otherwise",
                         variable, most_queues, streams_of_rank),
            false};
  }
  const auto queues = queues_in(*given);
  if (!queues) {
    return {{},
            base::format("{} = {} is no number from 1 to {} (CUDA then has {} queues for a rank's "
                         "{} streams, and those that share one wait for each other); unset it",
                         variable, *given, most_queues, usual_queues, streams_of_rank),
            true};
  }
  if (*queues < streams_of_rank) {
    return {{},
            base::format("{} = {} (a rank has up to {} streams: those that share a queue wait for "
                         "each other, so gradients and messages do not travel beside computation, "
                         "and ranks may wait for each other for ever); unset it, or take {}",
                         variable, *given, streams_of_rank, most_queues),
            true};
  }
  return {};
}

DeviceQueues export_device_queues(const base::Environment& environment) {
  auto queues = device_queues(environment);
  // No other thread reads the environment yet.
  if (queues.value) ::setenv(variable, queues.value->c_str(), 1);
  return queues;
}

}  // namespace trireme::runtime
