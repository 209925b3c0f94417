// SPDX-License-Identifier: Apache-2.0
#include "graph_breaks.hpp"

#include <utility>

namespace trireme::engine {
namespace {

using comm::ReduceOp;
using comm::Work;
using device::Tensor;

/// Operation of a part that is captured: begins and is waited for when the part runs.
class CapturedOperation final : public Work::Operation {
 public:
  CapturedOperation(CudaGraphCache& cache, std::shared_ptr<Work> work)
      : cache_(cache), work_(std::move(work)) {}

  bool poll() override { return false; }
  bool done() const override { return false; }
  void wait() override { throw device::CaptureRefused("a wait of the host cannot be recorded"); }
  void wait_on_stream(std::unique_ptr<Operation> /*self*/) override {
    cache_.break_graph([work = work_] { work->wait_on_stream(); });
  }

 private:
  CudaGraphCache& cache_;
  std::shared_ptr<Work> work_;
};

class GraphBreaks final : public comm::ProcessGroup {
 public:
  GraphBreaks(comm::ProcessGroup& inner, CudaGraphCache& cache)
      : ProcessGroup(inner.name(), inner.ranks(), inner.rank()), inner_(inner), cache_(cache) {}

  const char* backend() const override { return inner_.backend(); }
  ProcessGroup& host_group() override { return inner_.host_group(); }

  Work start_all_reduce(const Tensor& x, ReduceOp op) override {
    return start([=, this] { return inner_.start_all_reduce(x, op); });
  }
  Work start_reduce_scatter(const Tensor& whole, const Tensor& part,
                            const comm::Cuts& cuts) override {
    return start([=, this] { return inner_.start_reduce_scatter(whole, part, cuts); });
  }
  Work start_all_gather(const Tensor& part, const Tensor& whole, const comm::Cuts& cuts) override {
    return start([=, this] { return inner_.start_all_gather(part, whole, cuts); });
  }
  Work start_all_to_all(const Tensor& from, const Tensor& to) override {
    return start([=, this] { return inner_.start_all_to_all(from, to); });
  }
  Work start_broadcast(const Tensor& x, int root) override {
    return start([=, this] { return inner_.start_broadcast(x, root); });
  }
  Work start_send(const Tensor& x, int peer, int tag) override {
    return start([=, this] { return inner_.start_send(x, peer, tag); });
  }
  Work start_receive(const Tensor& x, int peer, int tag) override {
    return start([=, this] { return inner_.start_receive(x, peer, tag); });
  }
  void barrier() override { inner_.barrier(); }
  std::unique_ptr<comm::Registration> register_memory(const Tensor& memory,
                                                      comm::Offsets offsets) override {
    return inner_.register_memory(memory, offsets);
  }
  std::unique_ptr<comm::Registration> register_for_messages(const Tensor& memory) override {
    return inner_.register_for_messages(memory);
  }

 private:
  template <typename Start>
  Work start(const Start& start) {
    if (!cache_.capturing()) return start();
    // Part after part begins its own operation here.
    auto work = std::make_shared<Work>();
    cache_.break_graph([start, work] { *work = start(); });
    return Work(std::make_unique<CapturedOperation>(cache_, std::move(work)));
  }

  comm::ProcessGroup& inner_;
  CudaGraphCache& cache_;
};

}  // namespace

std::unique_ptr<comm::ProcessGroup> graph_breaks(comm::ProcessGroup& inner, CudaGraphCache& cache) {
  return std::make_unique<GraphBreaks>(inner, cache);
}

}  // namespace trireme::engine
