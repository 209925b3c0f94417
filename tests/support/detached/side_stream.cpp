#include "support/detached/side_stream.hpp"

#include <memory>
#include <stdexcept>
#include <utility>

namespace trireme::testing {
namespace {

class Point final : public device::Event::Point {
 public:
  Point(DetachedSideStream& stream, std::uint64_t place) : stream_(stream), place_(place) {}
  bool passed() override {
    stream_.advance();
    return stream_.done() >= place_;
  }
  void wait() override {
    // What is under way may need this very thread to go on.
    throw std::logic_error("the host blocks on an event of a side stream");
  }

 private:
  DetachedSideStream& stream_;
  std::uint64_t place_;
};

}  // namespace

void DetachedSideStream::issue(std::function<bool()> work) {
  waiting_.push_back(std::move(work));
  ++issued_;
}

void DetachedSideStream::follow() {
  issue([this, until = beside_.issued()] {
    beside_.run(until);
    return true;
  });
}

device::Event DetachedSideStream::record() {
  return device::Event(std::make_unique<Point>(*this, issued_));
}

void DetachedSideStream::advance() {
  while (!waiting_.empty() && waiting_.front()()) {
    waiting_.pop_front();
    ++done_;
  }
}

}  // namespace trireme::testing
