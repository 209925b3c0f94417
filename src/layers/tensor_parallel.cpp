// SPDX-License-Identifier: Apache-2.0
#include "tensor_parallel.hpp"

#include "trireme/device/timed.hpp"

#include <utility>

namespace trireme::layers {
namespace {

device::Tensor all_rows_like(const StageContext& context, const device::Tensor& local) {
  return context.workspace.allocate(local.dtype(), {context.rows(), local.dim(1)});
}

/// Does a part of a collective, and counts the computing thread's time for it.
template <typename Act>
void in_tensor_time(const StageContext& context, const Act& act) {
  device::Timed timed(context.tensor_watch, telemetry::SpanKind::tensor);
  act();
  timed.end();
}

comm::Work start_sum(const StageContext& context, const device::Tensor& terms,
                     const device::Tensor& local, const comm::Cuts& cuts) {
  return splits_rows(context) ? context.tensor.start_reduce_scatter(terms, local, cuts)
                              : context.tensor.start_all_reduce(local, comm::ReduceOp::sum);
}

}  // namespace

Pending::Pending(const StageContext& context, comm::Work work,
                 std::initializer_list<device::Tensor> tensors)
    : context_(&context), work_(std::move(work)) {
  for (const auto& tensor : tensors) leases_.emplace_back(context.workspace, tensor);
}

void Pending::join() {
  if (context_ == nullptr) return;
  in_tensor_time(*context_, [this] { work_.wait_on_stream(); });
  leases_.clear();
  context_ = nullptr;
}

bool splits_rows(const StageContext& context) {
  return context.sequence_parallel == model::SequenceParallel::on && context.tensor.size() > 1;
}

void gather(const StageContext& context, const device::Tensor& own, const device::Tensor& all) {
  in_tensor_time(context, [&] { context.tensor.start_all_gather(own, all, {}).wait_on_stream(); });
}

device::Tensor room_for_rows(const StageContext& context, device::Arena& arena) {
  if (!splits_rows(context)) return {};
  return arena.allocate(context.dtype, {context.rows(), context.config.hidden_size});
}

device::Tensor gather_rows(const StageContext& context, const device::Tensor& local,
                           const device::Tensor& room) {
  if (!splits_rows(context)) return local;
  const auto all = room ? room : all_rows_like(context, local);
  gather(context, local, all);
  return all;
}

PendingRows start_gather_rows(const StageContext& context, const device::Tensor& local,
                              const device::Tensor& room, const comm::Cuts& cuts) {
  if (!splits_rows(context)) return {local, {}};
  comm::Work work;
  in_tensor_time(context, [&] { work = context.tensor.start_all_gather(local, room, cuts); });
  return {room, {context, std::move(work), {local, room}}};
}

device::Tensor terms_of(const StageContext& context, const device::Tensor& local) {
  return splits_rows(context) ? all_rows_like(context, local) : local;
}

void sum_rows(const StageContext& context, const device::Tensor& terms,
              const device::Tensor& local) {
  if (context.tensor.size() == 1) return;
  in_tensor_time(context, [&] { start_sum(context, terms, local, {}).wait_on_stream(); });
}

Pending start_sum_rows(const StageContext& context, const device::Tensor& terms,
                       const device::Tensor& local, const comm::Cuts& cuts) {
  if (context.tensor.size() == 1) return {};
  comm::Work work;
  in_tensor_time(context, [&] { work = start_sum(context, terms, local, cuts); });
  return {context, std::move(work), {terms, local}};
}

device::Tensor bias_of_one(const StageContext& context, const device::Tensor& bias) {
  return context.tensor.rank() == 0 ? bias : device::Tensor{};
}

}  // namespace trireme::layers
