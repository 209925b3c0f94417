// SPDX-License-Identifier: Apache-2.0
#include "support/simulated_gpu/streams.hpp"

#include <algorithm>
#include <utility>

namespace trireme::testing::simulated_gpu {

bool Marker::passed() const {
  return stream->done_ >= count;
}

bool Marker::run() const {
  return passed() || stream->scheduler_->run_until(*this);
}

void Scheduler::stir() {
  // Work that runs may issue more, in the stead of a library.
  if (stirring_) return;
  stirring_ = true;
  if (haste_.kind == Haste::Kind::eager) run_all();
  if (haste_.kind == Haste::Kind::mixed && below(4) == 0) run_some();
  stirring_ = false;
}

std::vector<std::shared_ptr<Stream>> Scheduler::pending() const {
  std::vector<std::shared_ptr<Stream>> all;
  for (auto* const stream : streams_) {
    if (!stream->idle()) all.push_back(stream->shared_from_this());
  }
  return all;
}

void Scheduler::run_some() {
  const auto all = pending();
  if (all.empty()) return;
  auto& stream = *all[below(all.size())];
  stream.run(stream.done_ + 1 + below(stream.waiting_.size()));
}

void Scheduler::run_all() {
  for (bool moved = true; moved;) {
    moved = false;
    auto all = pending();
    std::shuffle(all.begin(), all.end(), random_);
    for (const auto& stream : all) {
      const auto before = stream->done_;
      if (!stream->idle()) stream->run(before + 1 + below(stream->waiting_.size()));
      moved = moved || stream->done_ != before;
    }
  }
}

/// Work of other streams may or may not be done on the way, unless it is lazy.
bool Scheduler::run_until(const Marker& marker) {
  const Memory::Opened opened(memory_);
  auto& stream = *marker.stream;
  do {
    if (haste_.kind == Haste::Kind::mixed && below(2) == 0) run_some();
  } while (!marker.passed() && stream.run(stream.done_ + 1));
  return marker.passed();
}

Stream::Stream(std::shared_ptr<Scheduler> scheduler) : scheduler_(std::move(scheduler)) {
  scheduler_->streams_.push_back(this);
}

void Stream::issue(std::function<void()> work) {
  issue_until([work = std::move(work)] {
    work();
    return true;
  });
}

void Stream::issue_until(Work work) {
  waiting_.push_back(std::move(work));
  ++issued_;
  scheduler_->stir();
}

void Stream::follow(const Marker& marker) {
  issue_until([marker] { return marker.stream->run(marker.count); });
}

bool Stream::run(std::uint64_t count) {
  // Work of another stream that is waited for here comes back to this one.
  if (running_ || done_ >= count) return done_ >= count;
  const Memory::Opened opened(scheduler_->memory_);
  running_ = true;
  try {
    while (done_ < count && !waiting_.empty() && waiting_.front()()) {
      waiting_.pop_front();
      ++done_;
    }
  } catch (...) {
    running_ = false;
    throw;
  }
  running_ = false;
  return done_ >= count;
}

}  // namespace trireme::testing::simulated_gpu
