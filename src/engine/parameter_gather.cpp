// SPDX-License-Identifier: Apache-2.0
#include "parameter_gather.hpp"

#include "trireme/base/contract.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/log.hpp"

#include "parts.hpp"
#include "weights/drop_on_failure.hpp"

#include <algorithm>
#include <exception>
#include <limits>
#include <utility>

namespace trireme::engine {

using device::Tensor;
using model::Place;

namespace {

constexpr int before_layers = -1;
constexpr int behind_layers = std::numeric_limits<int>::max();

}  // namespace

ParameterGather::ParameterGather(const sharding::Sharding& sharding, comm::ProcessGroup& data,
                                 device::Device& device)
    : data_(data),
      sharding_(sharding),
      is_first_stage_(
          sharding.options().mesh.coordinate(layout::Axis::pipeline, sharding.options().rank) == 0),
      waited_(device.stopwatch()) {
  const auto& stage = sharding.stage();
  for (std::size_t bucket = 0; bucket < stage.flat().buckets.size(); ++bucket) {
    turns_.push_back({behind_layers, bucket});
  }
  for (std::size_t index = 0; index < stage.fused_parameters().size(); ++index) {
    const int position = position_of(stage.fused_parameters()[index].place);
    const auto buckets = stage.flat().buckets_of_tensor(index);
    for (auto each = buckets.begin; each < buckets.end; ++each) {
      auto& turn = turns_[static_cast<std::size_t>(each)];
      turn.position = std::min(turn.position, position);
    }
  }
  // Layers of a stage are computed in ascending order, whichever of its chunks has them.
  std::stable_sort(turns_.begin(), turns_.end(),
                   [](const Turn& a, const Turn& b) { return a.position < b.position; });
}

ParameterGather::~ParameterGather() {
  if (std::uncaught_exceptions() > 0) return;
  try {
    finish();
  } catch (const base::Error& error) {
    base::log::local::error("engine", "at the end of an engine: {}", error.what());
  }
}

int ParameterGather::position_of(const Place& place) const {
  switch (place.kind) {
    case Place::Kind::embedding:
      // Elsewhere it is the copy of a tied table, which the head reads.
      return is_first_stage_ ? before_layers : behind_layers;
    case Place::Kind::layer:
      return place.layer;
    case Place::Kind::head:
      return behind_layers;
  }
  return before_layers;
}

void ParameterGather::start(const Tensor& flat) {
  TRIREME_EXPECT(next_ == works_.size(), "gathers are waited for before the next ones start");
  works_.clear();
  next_ = 0;
  for (const auto& turn : turns_) {
    const auto whole = sharding_.stage().flat().buckets[turn.bucket];
    const auto shard = sharding_.updated(turn.bucket);
    works_.push_back(data_.start_all_gather(flat.slice(0, shard.begin, shard.size()),
                                            flat.slice(0, whole.begin, whole.size()),
                                            sharding_.stage().flat().cuts_of_bucket(turn.bucket)));
  }
  if (data_.moves_by_itself()) return;
  const DropOnFailure guard(works_);
  for (; next_ < works_.size(); ++next_) works_[next_].wait_on_stream();
}

void ParameterGather::poll() {
  // Order: groups complete collectives in the order of their start.
  for (auto index = next_; index < works_.size() && works_[index].poll();) ++index;
}

bool ParameterGather::waits_at(const Place& place) const {
  const int position = position_of(place);
  return data_.moves_by_itself() &&
         std::any_of(turns_.begin(), turns_.end(),
                     [&](const Turn& turn) { return turn.position == position; });
}

void ParameterGather::wait_for(const Place& place) {
  wait_up_to(position_of(place));
}

void ParameterGather::finish() {
  wait_up_to(behind_layers);
}

std::optional<double> ParameterGather::take_waited_seconds() {
  return data_.moves_by_itself() ? std::optional(waited_->take()) : std::nullopt;
}

void ParameterGather::wait_up_to(int position) {
  const auto is_due = [&] { return next_ < works_.size() && turns_[next_].position <= position; };
  if (!is_due()) return;
  const DropOnFailure guard(works_);
  waited_->start();
  for (; is_due(); ++next_) works_[next_].wait_on_stream();
  waited_->stop();
}

void ResidentWeights::acquire(const Place& place, layers::Pass pass) {
  // Later passes find what forward has waited for.
  if (pass == layers::Pass::forward) {
    wait_for_(place);
  } else if (begins_) {
    begins_(place);
  }
}

void ResidentWeights::release(const Place& place, layers::Pass pass) {
  if (pass != layers::Pass::forward && ends_) ends_(place);
}

void Engine::Parts::parameters_changed() {
  if (gathered) gathered->parameters_changed();
  if (gather) gather->start(flat_parameters);
}

void Engine::Parts::finish_gathers() {
  if (gather) gather->finish();
}

void Engine::Parts::wait_for_parameters(const model::Place& place) {
  // Copies of weights are made from all parameters, before the first layer.
  if (!gather || weight_copies || !gather->waits_at(place)) return;
  // Graph break: a graph would hold the waits of the step in which it was captured. Whenever it
  // runs, this waits for the gathers of that step, and in later micro-batches for nothing.
  graphs.outside([this, place] { gather->wait_for(place); });
}

void Engine::read_parameters(const std::function<void()>& pass) const {
  auto& parts = *parts_;
  parts.finish_gathers();
  if (!parts.gathered) return pass();
  std::vector<Place> order;
  for (const auto& places : parts.chunk_places) {
    order.insert(order.end(), places.begin(), places.end());
  }
  parts.gathered->begin(std::move(order));
  pass();
  parts.gathered->finish();
  // Discarded: no training step waited.
  static_cast<void>(parts.take_weights_seconds());
}

layers::WeightSource& Engine::weights() const {
  return *parts_->context.weights;
}

}  // namespace trireme::engine
