// SPDX-License-Identifier: Apache-2.0
#include "support/detached/stream.hpp"

#include "trireme/base/philox.hpp"

namespace trireme::testing {

void DetachedOrder::stir() {
  // What runs may issue more, in the stead of a library.
  if (stirring_) return;
  stirring_ = true;
  switch (haste_.kind) {
    case Haste::Kind::lazy:
      break;
    case Haste::Kind::eager:
      run_what_can();
      break;
    case Haste::Kind::mixed:
      run_some();
      break;
  }
  stirring_ = false;
}

void DetachedOrder::run_what_can() {
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t i = 0; i < streams_.size(); ++i) {
      const auto before = streams_[i]->done();
      streams_[i]->run_all();
      moved = moved || streams_[i]->done() != before;
    }
  }
}

void DetachedOrder::run_some() {
  const auto bits = base::philox(haste_.seed, 0, ++stirred_);
  if (bits[0] % 4 != 0 || streams_.empty()) return;
  auto& stream = *streams_[bits[1] % streams_.size()];
  const auto left = stream.issued() - stream.done();
  stream.run(stream.done() + bits[2] % (left + 1));
}

void DetachedStream::issue(std::function<void()> work) {
  issue_until([work = std::move(work)] {
    work();
    return true;
  });
}

std::vector<DetachedStream::Work> DetachedStream::take_kept() {
  auto kept = std::move(kept_).value_or(std::vector<Work>{});
  kept_.reset();
  return kept;
}

void DetachedStream::issue_until(Work work) {
  if (kept_) {
    kept_->push_back(std::move(work));
    return;
  }
  waiting_.push_back(std::move(work));
  ++issued_;
  order_->stir();
}

bool DetachedStream::run(std::uint64_t count) {
  // Work of another stream that is waited for here comes back to this one.
  if (running_) return done_ >= count;
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

}  // namespace trireme::testing
