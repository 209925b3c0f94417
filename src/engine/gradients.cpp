// SPDX-License-Identifier: Apache-2.0
#include "gradients.hpp"

#include "trireme/device/timed.hpp"

#include <algorithm>
#include <utility>

namespace trireme::engine {

using device::Tensor;
using device::Timed;
using layout::Axis;
using telemetry::SpanKind;

namespace {

/// Elements of a bucket that a data-parallel rank has the sums of, at most.
std::int64_t most_held(const sharding::Sharding& sharding, std::size_t bucket) {
  const auto& flat = sharding.stage().flat();
  if (!sharding.divides_updates()) return flat.buckets[bucket].size();
  std::int64_t most = 0;
  const auto& cuts = flat.cuts_of_bucket(bucket);
  if (cuts.empty()) return flat.shard_of_bucket(bucket, 0).size();
  for (std::size_t shard = 1; shard < cuts.size(); ++shard) {
    most = std::max(most, cuts[shard] - cuts[shard - 1]);
  }
  return most;
}

/// Elements of the exchange buffer: room for every rank's part of what is held of each partial
/// shard piece. The same on all data-parallel ranks, whatever lies in their shards.
std::int64_t exchange_size(const sharding::Sharding& sharding) {
  const auto& stage = sharding.stage();
  std::int64_t size = 0;
  for (std::size_t bucket = 0; bucket < stage.flat().buckets.size(); ++bucket) {
    std::int64_t whole = 0;
    std::int64_t parts = 0;
    stage.each_piece(stage.flat().buckets[bucket],
                     [&](const model::ShardPiece& piece, layout::FlatRange common) {
                       if (!piece.partial) return;
                       whole += piece.parts * common.size();
                       parts = std::max<std::int64_t>(parts, piece.parts);
                     });
    size += std::min(whole, parts * most_held(sharding, bucket));
  }
  return size;
}

}  // namespace

GradientReducer::GradientReducer(const sharding::Sharding& sharding, const comm::AxisGroups& groups,
                                 GradientMemory memory, device::Kernels& kernels,
                                 device::Arena& arena)
    : sharding_(sharding),
      groups_(groups),
      kernels_(kernels),
      stage_(sharding.stage()),
      memory_(std::move(memory)),
      parameters_of_bucket_(stage_.flat().buckets.size(), 0),
      exposed_(kernels.device().stopwatch()),
      hosts_part_(kernels.device().is_host() ? exposed_.get() : nullptr) {
  if (memory_.is_divided()) begun_.resize(memory_.units->all().size());
  has_sums_.resize(stage_.flat().buckets.size());
  if (const auto size = exchange_size(sharding); size > 0) {
    exchange_ = arena.allocate(device::DType::f32, {size});
  }
  for (std::size_t index = 0; index < stage_.fused_parameters().size(); ++index) {
    const auto& fused = stage_.fused_parameters()[index];
    const auto buckets = stage_.flat().buckets_of_tensor(index);
    for (auto each = buckets.begin; each < buckets.end; ++each) {
      const auto bucket = static_cast<std::size_t>(each);
      ++parameters_of_bucket_[bucket];
      // Reduced at the end of the step.
      if (!fused.tied) buckets_of_place_[fused.place].push_back(bucket);
    }
  }
}

void GradientReducer::begin_step() {
  parameters_missing_ = parameters_of_bucket_;
  std::fill(begun_.begin(), begun_.end(), false);
  std::fill(has_sums_.begin(), has_sums_.end(), false);
  if (!memory_.is_divided()) kernels_.issue(device::Fill{memory_.terms, 0.0F});
}

void GradientReducer::prepare(const model::Place& place) {
  if (!memory_.is_divided()) return;
  for (const auto index : memory_.units->of(place)) {
    const auto& unit = memory_.units->all()[index];
    if (begun_[index]) continue;
    free(unit.ring);
    begun_[index] = true;
    for (const auto bucket : unit.buckets) {
      kernels_.issue(device::Fill{memory_.terms_of(bucket, {}), 0.0F});
    }
  }
}

void GradientReducer::free(layout::FlatRange ring) {
  const auto is_from_it = [&](const UnderWay& each) {
    return overlap(memory_.units->place_of(each.bucket), ring);
  };
  const auto last = std::find_if(under_way_.rbegin(), under_way_.rend(), is_from_it).base();
  if (last == under_way_.begin()) return;
  Timed timed(exposed_.get(), SpanKind::gradients);
  for (auto each = under_way_.begin(); each != last; ++each) {
    each->work.wait_on_stream();
    add_up(each->bucket);
  }
  under_way_.erase(under_way_.begin(), last);
  if (under_way_.empty()) end_busy();
  timed.end();
}

void GradientReducer::completed(const model::Place& place) {
  const auto found = buckets_of_place_.find(place);
  if (found == buckets_of_place_.end()) return;
  for (const auto bucket : found->second) {
    if (--parameters_missing_[bucket] == 0) start(bucket);
  }
}

void GradientReducer::completed_micro_batch(const model::Place& place) {
  const bool embeds =
      sharding_.options().mesh.coordinate(Axis::pipeline, sharding_.options().rank) == 0;
  for (const auto index : memory_.units->of(place)) {
    const auto& unit = memory_.units->all()[index];
    // The embedding's gradient follows that of the head, which reads the same table.
    const bool goes_on = unit.place != place && embeds;
    if (goes_on) continue;
    begun_[index] = false;
    for (const auto bucket : unit.buckets) start(bucket);
  }
}

void GradientReducer::add_up(std::size_t bucket) {
  if (!sharding_.options().reduces_micro_batches()) return;
  const auto own = sharding_.updated(bucket);
  if (own.size() == 0) return;
  const auto terms = memory_.terms_of(bucket, stage_.flat().buckets[bucket], own);
  const auto sums = memory_.sums_of(bucket, own);
  if (has_sums_[bucket]) {
    kernels_.issue(device::Add{sums, terms, sums});
  } else {
    kernels_.issue(device::Copy{terms, sums});
  }
  has_sums_[bucket] = true;
}

void GradientReducer::start(std::size_t bucket) {
  if (groups_.replicas().size() == 1) return;
  Timed timed(hosts_part_, SpanKind::gradients);
  if (under_way_.empty()) busy_since_ = telemetry::SpanClock::now();
  const auto range = stage_.flat().buckets[bucket];
  const auto whole = memory_.terms_of(bucket, range);
  const auto own = sharding_.updated(bucket);
  auto& replicas = groups_.replicas();
  if (!sharding_.divides_updates()) {
    under_way_.push_back({bucket, replicas.start_all_reduce(whole, comm::ReduceOp::sum)});
  } else {
    const auto sums = sharding_.options().reduces_micro_batches()
                          ? memory_.terms_of(bucket, range, own)
                          : memory_.sums_of(bucket, own);
    under_way_.push_back(
        {bucket, replicas.start_reduce_scatter(whole, sums, stage_.flat().cuts_of_bucket(bucket))});
  }
  timed.end();
}

void GradientReducer::poll() {
  if (under_way_.empty()) return;
  Timed timed(hosts_part_, SpanKind::gradients);
  // Order: groups complete collectives in the order of their start.
  while (!under_way_.empty() && under_way_.front().work.poll()) {
    add_up(under_way_.front().bucket);
    under_way_.erase(under_way_.begin());
  }
  if (under_way_.empty()) end_busy();
  timed.end();
}

void GradientReducer::end_busy() {
  const std::chrono::duration<double> busy = telemetry::SpanClock::now() - busy_since_;
  busy_seconds_ += busy.count();
}

std::optional<double> GradientReducer::take_busy_seconds() {
  if (hosts_part_ == nullptr) return std::nullopt;
  return std::exchange(busy_seconds_, 0.0);
}

void GradientReducer::wait_on_stream() {
  if (under_way_.empty()) return;
  Timed timed(exposed_.get(), SpanKind::gradients);
  for (auto& each : under_way_) {
    each.work.wait_on_stream();
    add_up(each.bucket);
  }
  under_way_.clear();
  end_busy();
  timed.end();
}

template <typename Act>
void GradientReducer::each_partial(const Act& act) const {
  std::int64_t begin = 0;
  for (std::size_t bucket = 0; bucket < stage_.flat().buckets.size(); ++bucket) {
    stage_.each_piece(
        sharding_.updated(bucket), [&](const model::ShardPiece& piece, layout::FlatRange own) {
          if (!piece.partial) return;
          const auto place = begin + piece.part * own.size();
          act(piece, memory_.sums_of(bucket, own), layout::FlatRange{place, place + own.size()});
          begin += piece.parts * own.size();
        });
  }
}

/// Sums shard pieces of which each tensor-parallel rank has one term. Ranks that hold different
/// boxes put theirs at different places of the exchange buffer, zeros elsewhere.
///
/// Runs after the sums over data-parallel ranks, as add_tied_terms() does and for the same reason:
/// the last sum is one that all tensor-parallel ranks share, so that their copies keep the same
/// bits. Of a divided bucket only the rank's own part is a sum by then, and exchanged.
void GradientReducer::add_partial_terms() {
  if (!exchange_) return;
  kernels_.issue(device::Fill{exchange_, 0.0F});
  const auto of_exchange = [this](layout::FlatRange place) {
    return exchange_.slice(0, place.begin, place.size());
  };
  each_partial([&](const model::ShardPiece& piece, const Tensor& own, layout::FlatRange place) {
    if (piece.contributes) kernels_.issue(device::Copy{own, of_exchange(place)});
  });
  groups_.on(Axis::tensor).start_all_reduce(exchange_, comm::ReduceOp::sum).wait_on_stream();
  each_partial([&](const model::ShardPiece&, const Tensor& own, layout::FlatRange place) {
    kernels_.issue(device::Copy{of_exchange(place), own});
  });
}

/// Runs after the sums over data-parallel ranks: both stages then add the same two terms, and have
/// the same bits, whatever the order in which a library added the others on each of them.
void GradientReducer::add_tied_terms() {
  if (groups_.ends() == nullptr || groups_.ends()->size() == 1) return;
  const auto& flat = stage_.flat();
  for (auto bucket = stage_.first_tied_bucket(); bucket < flat.buckets.size(); ++bucket) {
    const auto range = sharding_.updated(bucket);
    groups_.ends()
        ->start_all_reduce(memory_.sums_of(bucket, range), comm::ReduceOp::sum)
        .wait_on_stream();
  }
}

void GradientReducer::finish() {
  if (!sharding_.options().reduces_micro_batches()) {
    for (auto bucket = stage_.first_tied_bucket(); bucket < stage_.flat().buckets.size();
         ++bucket) {
      start(bucket);
    }
  }
  wait_on_stream();
  Timed timed(exposed_.get(), SpanKind::gradients);
  add_partial_terms();
  add_tied_terms();
  timed.end();
}

/// Each data-parallel rank counts its shard of each bucket at every ZeRO level.
void GradientReducer::add_squares(ExactSum& squares) {
  for (std::size_t bucket = 0; bucket < stage_.flat().buckets.size(); ++bucket) {
    stage_.each_piece(sharding_.counted(bucket),
                      [&](const model::ShardPiece& piece, layout::FlatRange counted) {
                        if (!piece.primary) return;
                        kernels_.start_sum_of_squares(memory_.sums_of(bucket, counted));
                      });
  }
  for (const double sum : kernels_.finish_sums()) squares.add(sum);
}

}  // namespace trireme::engine
