// SPDX-License-Identifier: Apache-2.0
#include "part_exchange.hpp"

#include "trireme/base/contract.hpp"

#include <chrono>

namespace trireme::engine {
namespace {

using device::Tensor;

/// act(place of the part in an owned matrix, place of the part in what is exchanged) for all parts
/// of all matrices that this rank owns.
template <typename Act>
void each_part(const optim::MicroGroup& group, const Act& act) {
  for (std::int64_t holder = 0; holder < group.received.dim(0); ++holder) {
    const auto received = group.received.slice(0, holder, 1).reshape({group.received.dim(1)});
    std::int64_t begin = 0;
    for (const auto& [parts, whole] : group.owned) {
      const auto& [offset, length] = (*parts)[static_cast<std::size_t>(holder)];
      const auto count = length[0] * length[1];
      act(whole.slice(0, offset[0], length[0]).slice(1, offset[1], length[1]),
          received.slice(0, begin, count).reshape({length[0], length[1]}));
      begin += count;
    }
  }
}

}  // namespace

double seconds_since(telemetry::SpanClock::time_point begin) {
  return std::chrono::duration<double>(telemetry::SpanClock::now() - begin).count();
}

void PartExchange::start(const Tensor& from, const Tensor& to) {
  const auto begin = telemetry::SpanClock::now();
  const auto elements = from.element_count();
  under_way_.push_back(tensor_.start_all_to_all(from.reshape({elements}), to.reshape({elements})));
  times_.exposed_seconds += seconds_since(begin);
}

void PartExchange::finish() {
  TRIREME_EXPECT(!under_way_.empty(), "an exchange ends after it has started");
  const auto begin = telemetry::SpanClock::now();
  under_way_.front().wait_on_stream();
  under_way_.pop_front();
  times_.exposed_seconds += seconds_since(begin);
}

void PartExchange::start_gather(const optim::MicroGroup& group) {
  const auto begin = telemetry::SpanClock::now();
  start(group.parts, group.received);
  times_.gather_seconds += seconds_since(begin);
}

void PartExchange::finish_gather(device::Kernels& kernels, const optim::MicroGroup& group) {
  const auto begin = telemetry::SpanClock::now();
  finish();
  each_part(group, [&](const Tensor& place, const Tensor& part) {
    kernels.issue(device::Copy{part, place});
  });
  times_.gather_seconds += seconds_since(begin);
}

void PartExchange::start_scatter(device::Kernels& kernels, const optim::MicroGroup& group) {
  const auto begin = telemetry::SpanClock::now();
  each_part(group, [&](const Tensor& place, const Tensor& part) {
    kernels.issue(device::Copy{place, part});
  });
  start(group.received, group.parts);
  times_.scatter_seconds += seconds_since(begin);
}

void PartExchange::finish_scatter(const optim::MicroGroup&) {
  const auto begin = telemetry::SpanClock::now();
  finish();
  times_.scatter_seconds += seconds_since(begin);
}

void PartExchange::poll() {
  // Order: groups complete collectives in the order of their start.
  for (auto& work : under_way_) {
    if (!work.poll()) break;
  }
}

}  // namespace trireme::engine
