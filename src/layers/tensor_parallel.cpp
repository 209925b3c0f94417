// SPDX-License-Identifier: Apache-2.0
#include "tensor_parallel.hpp"

#include "trireme/device/timed.hpp"

namespace trireme::layers {
namespace {

bool splits_rows(const StageContext& context) {
  return context.sequence_parallel == model::SequenceParallel::on && context.tensor.size() > 1;
}

device::Tensor all_rows_like(const StageContext& context, const device::Tensor& local) {
  return context.workspace.allocate(local.dtype(), {context.rows(), local.dim(1)});
}

}  // namespace

void gather(const StageContext& context, const device::Tensor& own, const device::Tensor& all) {
  device::Timed timed(context.tensor_watch, telemetry::SpanKind::tensor);
  context.tensor.start_all_gather(own, all, {}).wait_on_stream();
  timed.end();
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

device::Tensor terms_of(const StageContext& context, const device::Tensor& local) {
  return splits_rows(context) ? all_rows_like(context, local) : local;
}

void sum_rows(const StageContext& context, const device::Tensor& terms,
              const device::Tensor& local) {
  if (context.tensor.size() == 1) return;
  device::Timed timed(context.tensor_watch, telemetry::SpanKind::tensor);
  if (splits_rows(context)) {
    context.tensor.start_reduce_scatter(terms, local, {}).wait_on_stream();
  } else {
    context.tensor.start_all_reduce(local, comm::ReduceOp::sum).wait_on_stream();
  }
  timed.end();
}

device::Tensor bias_of_one(const StageContext& context, const device::Tensor& bias) {
  return context.tensor.rank() == 0 ? bias : device::Tensor{};
}

}  // namespace trireme::layers
