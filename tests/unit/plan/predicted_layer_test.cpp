// SPDX-License-Identifier: Apache-2.0
// The prediction's operations of a layer beside those that the engine issues.
#include "trireme/device/gemm_tuning.hpp"
#include "trireme/plan/time_plan.hpp"

#include "predict/layer_operations.hpp"
#include "unit/engine/tensor_timeline.hpp"
#include "unit/predict/machines.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

using namespace trireme;
using namespace trireme::tests;
using config::Activation;
using model::SequenceParallel;
using telemetry::SpanKind;

namespace {

/// FLOPs and bytes a second of which times are made.
constexpr double unit_rate = 1e12;

/// A product, the start of a collective, or the wait for one, in the order in which a rank issues
/// them.
struct Issued {
  enum class What { product, start, join };
  What what = What::product;
  /// FLOPs, bytes that a rank sends, or the number of the collective.
  double size = 0;
};

std::vector<std::string> texts(const std::vector<Issued>& all) {
  std::vector<std::string> lines;
  for (const auto& each : all) {
    const char* const name = each.what == Issued::What::product ? "product"
                             : each.what == Issued::What::start ? "start"
                                                                : "join";
    lines.push_back(name + std::string(" ") + std::to_string(std::llround(each.size)));
  }
  return lines;
}

/// Operations of one layer, as an engine issues them.
class IssuedOperations final : public device::Kernels, public telemetry::SpanObserver {
 public:
  std::vector<Issued> forward;
  std::vector<Issued> backward;

  comm::Work start(double bytes) {
    auto* const list = current();
    if (list == nullptr) return {};
    list->push_back({Issued::What::start, bytes});
    return comm::Work(std::make_unique<Operation>(*list));
  }

  void begin(SpanKind kind, const telemetry::SpanPlace&, std::uint64_t) override {
    open_.push_back(kind);
  }
  void end() override { open_.pop_back(); }

  const char* name() const override { return "issued"; }
  double sum_of_squares(const device::Tensor&) override { return 0.0; }
  double sum(const device::Tensor&) override { return 0.0; }
  void synchronize() override {}

 private:
  /// Waited for by where it stands among those that have started.
  class Operation final : public comm::Work::Operation {
   public:
    explicit Operation(std::vector<Issued>& list)
        : list_(list),
          number_(
              std::count_if(list.begin(), list.end(),
                            [](const Issued& each) { return each.what == Issued::What::start; }) -
              1) {}
    bool poll() override { return false; }
    bool done() const override { return false; }
    void wait() override { list_.push_back({Issued::What::join, static_cast<double>(number_)}); }

   private:
    std::vector<Issued>& list_;
    std::ptrdiff_t number_;
  };

  std::vector<Issued>* current() {
    for (const auto kind : open_) {
      if (kind == SpanKind::layer_forward) return &forward;
      if (kind == SpanKind::layer_recompute || kind == SpanKind::layer_backward_input ||
          kind == SpanKind::layer_backward_weight) {
        return &backward;
      }
    }
    return nullptr;
  }

  void compute(const device::Operation& operation) override {
    operation.visit([this]<typename One>(One one) {
      if constexpr (device::GemmOperations::holds<One>) {
        const auto call = device::gemm_call(one);
        const auto multiplied = static_cast<double>(call.x.element_count());
        auto* const list = current();
        if (list == nullptr) return;
        list->push_back(
            {Issued::What::product, 2 * multiplied * static_cast<double>(call.result.dim(1))});
      }
    });
  }

  std::vector<SpanKind> open_;
};

IssuedOperations issued_by_engine(engine::EngineOptions options) {
  options.model.num_hidden_layers = 1;
  IssuedOperations issued;
  run_observed(options, issued, issued,
               [&](const Collective& collective) { return issued.start(collective.bytes); });
  return issued;
}

/// Eight GPUs of a node, whose passes over memory and attention take no time.
predict::Machine unit_machine() {
  auto machine = plain_machine();
  machine.node.gpus = tensor_degree;
  machine.node.peak_bf16 = unit_rate;
  machine.node.memory_rate = 1e40;
  machine.share.attention = 1e20;
  machine.inside.rate = unit_rate;
  return machine;
}

/// Operations of a layer of these options on a machine.
class PredictedLayer {
 public:
  PredictedLayer(const engine::EngineOptions& options, predict::Machine machine)
      : machine_(std::move(machine)), workload_(plan::workload_of(options, machine_)) {}

  const predict::LayerOperations& operations() const { return operations_; }

 private:
  predict::Machine machine_;
  predict::Workload workload_;
  predict::Placement placement_{machine_, tensor_degree};
  predict::Links links_{machine_, placement_.node_size()};
  predict::OperationCosts costs_{machine_, workload_.program.precision, 1};
  predict::LayerOperations operations_{machine_, workload_, placement_, costs_, links_};
};

std::vector<Issued> predicted(const std::vector<predict::Operation>& operations) {
  using Kind = predict::Operation::Kind;
  std::vector<Issued> list;
  double started = 0;
  std::vector<double> numbers;
  for (const auto& operation : operations) {
    const double size = unit_rate * predict::seconds_of(operation.time);
    if (operation.kind == Kind::join) {
      list.push_back({Issued::What::join, numbers.at(operation.started)});
    } else if (operation.part == predict::Part::compute) {
      if (operation.time > predict::Time::zero()) list.push_back({Issued::What::product, size});
    } else {
      list.push_back({Issued::What::start, size});
      if (operation.kind == Kind::start) {
        numbers.push_back(started);
      } else {
        list.push_back({Issued::What::join, started});
      }
      ++started;
    }
  }
  return list;
}

engine::EngineOptions computing_again(SequenceParallel sequence, const config::Recompute& again) {
  auto options = eight_billion_in_eight(sequence);
  options.memory.recompute = again;
  return options;
}

}  // namespace

TEST_CASE("a predicted layer issues products and collectives in the engine's order") {
  const std::vector<config::Recompute> sets{
      {}, {Activation::mlp}, {Activation::norms, Activation::activation}, {Activation::layer}};
  for (const auto sequence : {SequenceParallel::on, SequenceParallel::off}) {
    for (const auto& again : sets) {
      const auto options = computing_again(sequence, again);
      CAPTURE(again.text(), sequence == SequenceParallel::on);
      const auto issued = issued_by_engine(options);
      const PredictedLayer layer(options, unit_machine());
      CHECK(texts(predicted(layer.operations().forward())) == texts(issued.forward));
      CHECK(texts(predicted(layer.operations().backward(
                again.in_layer(0), predict::BackwardHalf::both))) == texts(issued.backward));
    }
  }
}

TEST_CASE("a predicted layer waits for collectives as long as the engine's does") {
  auto machine = unit_machine();
  machine.node.peak_bf16 = rates.flops;
  machine.node.memory_rate = rates.memory_bytes;
  machine.share.attention = 1;
  machine.inside.rate = bus_bytes_per_second;
  for (const auto sequence : {SequenceParallel::on, SequenceParallel::off}) {
    const auto options = eight_billion_in_eight(sequence);
    Timeline timeline;
    run_on(timeline, options);
    const PredictedLayer layer(options, machine);
    const auto list = layer.operations().backward({}, predict::BackwardHalf::both);
    double collectives = 0;
    for (const auto& operation : list) {
      if (operation.part == predict::Part::tensor) {
        collectives += predict::seconds_of(operation.time);
      }
    }
    const auto exposed = predict::seconds_of(predict::sum_of(list).tensor);
    CHECK(collectives == Approx(timeline.of(Pass::backward).seconds / layer_count).epsilon(1e-6));
    CHECK(exposed ==
          Approx(timeline.of(Pass::backward).exposed_seconds / layer_count).epsilon(0.01));
  }
}
