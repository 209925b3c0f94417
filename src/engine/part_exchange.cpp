// SPDX-License-Identifier: Apache-2.0
#include "part_exchange.hpp"

#include <chrono>

namespace trireme::engine {
namespace {

using device::Tensor;

/// act(place of the part in an owned matrix, place of the part in the buffer) for all parts of all
/// matrices that this rank owns.
template <typename Act>
void each_part(const optim::MicroGroup& group, const Tensor& buffer, const Act& act) {
  const auto slots = buffer.dim(1);
  const auto part = buffer.dim(2);
  const auto flat = buffer.reshape({buffer.element_count()});
  for (std::size_t from = 0; from < group.boxes.size(); ++from) {
    const auto& [offset, length] = group.boxes[from];
    for (std::int64_t slot = 0; slot < group.owned; ++slot) {
      const auto begin = (static_cast<std::int64_t>(from) * slots + slot) * part;
      const auto matrix =
          group.whole.slice(0, slot, 1).reshape({group.whole.dim(1), group.whole.dim(2)});
      act(matrix.slice(0, offset[0], length[0]).slice(1, offset[1], length[1]),
          flat.slice(0, begin, length[0] * length[1]).reshape({length[0], length[1]}));
    }
  }
}

}  // namespace

double seconds_since(telemetry::SpanClock::time_point begin) {
  return std::chrono::duration<double>(telemetry::SpanClock::now() - begin).count();
}

void PartExchange::exchange(const Tensor& from, const Tensor& to) {
  const auto begin = telemetry::SpanClock::now();
  const auto elements = from.element_count();
  tensor_.start_all_to_all(from.reshape({elements}), to.reshape({elements})).wait_on_stream();
  times_.exposed_seconds += seconds_since(begin);
}

void PartExchange::gather(device::Kernels& kernels, const optim::MicroGroup& group) {
  const auto begin = telemetry::SpanClock::now();
  exchange(group.parts, group.received);
  each_part(group, group.received, [&](const Tensor& place, const Tensor& part) {
    kernels.issue(device::Copy{part, place});
  });
  times_.gather_seconds += seconds_since(begin);
}

void PartExchange::scatter(device::Kernels& kernels, const optim::MicroGroup& group) {
  const auto begin = telemetry::SpanClock::now();
  each_part(group, group.received, [&](const Tensor& place, const Tensor& part) {
    kernels.issue(device::Copy{place, part});
  });
  exchange(group.received, group.parts);
  times_.scatter_seconds += seconds_since(begin);
}

}  // namespace trireme::engine
