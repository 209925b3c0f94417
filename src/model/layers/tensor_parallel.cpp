// SPDX-License-Identifier: Apache-2.0
#include "tensor_parallel.hpp"

namespace trireme::model {
namespace {

bool splits_rows(const StageContext& context) {
  return context.sequence_parallel == SequenceParallel::on && context.tensor.size() > 1;
}

device::Tensor all_rows_like(const StageContext& context, const device::Tensor& local) {
  return context.workspace.allocate(local.dtype(), {context.rows(), local.dim(1)});
}

}  // namespace

device::Tensor gather_rows(const StageContext& context, const device::Tensor& local) {
  if (!splits_rows(context)) return local;
  const auto all = all_rows_like(context, local);
  context.tensor.start_all_gather(local, all).wait_on_stream();
  return all;
}

device::Tensor terms_of(const StageContext& context, const device::Tensor& local) {
  return splits_rows(context) ? all_rows_like(context, local) : local;
}

void sum_rows(const StageContext& context, const device::Tensor& terms,
              const device::Tensor& local) {
  if (splits_rows(context)) {
    context.tensor.start_reduce_scatter(terms, local).wait_on_stream();
  } else if (context.tensor.size() > 1) {
    context.tensor.start_all_reduce(local, comm::ReduceOp::sum).wait_on_stream();
  }
}

device::Tensor bias_of_one(const StageContext& context, const device::Tensor& bias) {
  return context.tensor.rank() == 0 ? bias : device::Tensor{};
}

}  // namespace trireme::model
