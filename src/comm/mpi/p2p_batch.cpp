// SPDX-License-Identifier: Apache-2.0
#include "comm/mpi/p2p_batch.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"

#include <algorithm>
#include <set>

namespace trireme::comm {
namespace {

/// MPI counts in int; also the unit in which a long message makes progress.
constexpr std::size_t piece_bytes = std::size_t{1} << 30;
constexpr std::size_t flight_limit = 32;

/// Number of pieces; a message of no bytes is one piece.
std::size_t piece_count(std::size_t bytes) {
  return std::max<std::size_t>(1, (bytes + piece_bytes - 1) / piece_bytes);
}

std::size_t piece_length(std::size_t bytes, std::size_t piece) {
  return std::min(piece_bytes, bytes - piece * piece_bytes);
}

}  // namespace

P2pBatch::~P2pBatch() {
  for (auto& message : in_flight_) {
    const bool pending = message.request != MPI_REQUEST_NULL;
    if (pending && message.direction == Direction::receive) mpi::cancel_receive(message.request);
  }
}

void P2pBatch::start(const SendReceive& step) {
  if (step.from >= 0) {
    for (std::size_t piece = 0; piece < piece_count(step.receive.size()); ++piece) {
      const auto length = static_cast<int>(piece_length(step.receive.size(), piece));
      auto* const to = step.receive.data() + piece * piece_bytes;
      in_flight_.push_back({mpi::ireceive(to, length, step.from, tag_, communicator_), step.from,
                            length, Direction::receive});
    }
  }
  if (step.to >= 0) {
    for (std::size_t piece = 0; piece < piece_count(step.send.size()); ++piece) {
      const auto length = static_cast<int>(piece_length(step.send.size(), piece));
      const auto* const from = step.send.data() + piece * piece_bytes;
      in_flight_.push_back({mpi::isend(from, length, step.to, tag_, communicator_), step.to, length,
                            Direction::send});
    }
  }
}

/// Nulls the request when complete.
void P2pBatch::complete(InFlight& message) const {
  int received = message.bytes;
  const bool receives = message.direction == Direction::receive;
  if (!mpi::test(message.request, receives ? &received : nullptr) || received == message.bytes) {
    return;
  }
  throw base::Error(
      base::ExitCode::internal,
      base::format("{} bytes came from position {} of the process group where {} were due "
                   "(ranks call different operations or sizes); this is a defect of Trireme, "
                   "please report it",
                   received, message.peer, message.bytes));
}

bool P2pBatch::advance() {
  bool moved = false;
  while (next_ < steps_.size() && in_flight_.size() < flight_limit) {
    start(steps_[next_++]);
    moved = true;
  }
  const auto before = in_flight_.size();
  for (auto& message : in_flight_) complete(message);
  std::erase_if(in_flight_,
                [](const InFlight& message) { return message.request == MPI_REQUEST_NULL; });
  return moved || in_flight_.size() != before;
}

std::vector<int> P2pBatch::missing() const {
  std::set<int> absent;
  for (const auto& message : in_flight_) {
    if (message.direction == Direction::receive) absent.insert(message.peer);
  }
  for (auto step = next_; step < steps_.size(); ++step) {
    if (steps_[step].from >= 0) absent.insert(steps_[step].from);
  }
  if (absent.empty()) {
    for (const auto& message : in_flight_) absent.insert(message.peer);
  }
  return {absent.begin(), absent.end()};
}

}  // namespace trireme::comm
