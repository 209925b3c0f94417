#include "support/detached/stream.hpp"

#include "trireme/base/philox.hpp"

namespace trireme::testing {

void DetachedStream::issue(std::function<void()> work) {
  waiting_.push_back(std::move(work));
  ++issued_;
  switch (haste_.kind) {
    case Haste::Kind::lazy:
      break;
    case Haste::Kind::eager:
      run_all();
      break;
    case Haste::Kind::mixed: {
      const auto bits = base::philox(haste_.seed, 0, issued_);
      if (bits[0] % 4 == 0) run(done_ + bits[1] % (waiting_.size() + 1));
      break;
    }
  }
}

void DetachedStream::run(std::uint64_t count) {
  while (done_ < count && !waiting_.empty()) {
    const auto work = std::move(waiting_.front());
    waiting_.pop_front();
    ++done_;
    work();
  }
}

}  // namespace trireme::testing
