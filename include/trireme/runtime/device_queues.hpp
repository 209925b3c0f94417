#pragma once

#include "trireme/base/environment.hpp"

#include <optional>
#include <string>

namespace trireme::runtime {

/// What CUDA is told of the queues between a process and a card (docs/decisions/0025).
struct DeviceQueues {
  /// The value of CUDA_DEVICE_MAX_CONNECTIONS to set; empty where the user has set one.
  std::optional<std::string> value;
  /// For people, with the reason.
  std::string sentence;
  bool is_warning = false;
};

/// Streams of CUDA that a rank may have work on at once: its kernels', that of all ranks, of
/// tensor, pipeline and data parallelism and of tied embeddings, and one for each direction of
/// messages with two neighbours.
inline constexpr int streams_of_rank = 10;

/// As many queues as CUDA has: streams that share one wait for each other.
DeviceQueues device_queues(const base::Environment& environment);

/// Sets it in this process, before anything in it, MPI too, talks to a card.
DeviceQueues export_device_queues(const base::Environment& environment);

}  // namespace trireme::runtime
