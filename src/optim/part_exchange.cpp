// SPDX-License-Identifier: Apache-2.0
#include "part_exchange.hpp"

#include "trireme/base/contract.hpp"

#include <chrono>

namespace trireme::optim {
namespace {

using device::Tensor;

template <typename Act>
void timed(double& seconds, const Act& act) {
  const auto begin = std::chrono::steady_clock::now();
  act();
  seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// act(place of the part in an owned matrix, place of the part in what is exchanged) for all parts
/// of all matrices that this rank owns.
template <typename Act>
void each_part(const MicroGroup& group, const Act& act) {
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

void PartExchange::start(const Tensor& from, const Tensor& to) {
  timed(times_.exposed_seconds,
        [&] { under_way_.push_back(holders_.start_all_to_all(from.flat(), to.flat())); });
}

void PartExchange::finish() {
  TRIREME_EXPECT(!under_way_.empty(), "an exchange ends after it has started");
  timed(times_.exposed_seconds, [&] { under_way_.front().wait_on_stream(); });
  under_way_.pop_front();
}

void PartExchange::start_gather(const MicroGroup& group) {
  timed(times_.gather_seconds, [&] { start(group.parts, group.received); });
}

void PartExchange::finish_gather(device::Kernels& kernels, const MicroGroup& group) {
  timed(times_.gather_seconds, [&] {
    finish();
    each_part(group, [&](const Tensor& place, const Tensor& part) {
      kernels.issue(device::Copy{part, place});
    });
  });
}

void PartExchange::start_scatter(device::Kernels& kernels, const MicroGroup& group) {
  timed(times_.scatter_seconds, [&] {
    each_part(group, [&](const Tensor& place, const Tensor& part) {
      kernels.issue(device::Copy{place, part});
    });
    start(group.received, group.parts);
  });
}

void PartExchange::finish_scatter() {
  timed(times_.scatter_seconds, [&] { finish(); });
}

void PartExchange::poll() {
  // Order: groups complete collectives in the order of their start.
  for (auto& work : under_way_) {
    if (!work.poll()) break;
  }
}

}  // namespace trireme::optim
