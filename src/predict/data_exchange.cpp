// SPDX-License-Identifier: Apache-2.0
#include "data_exchange.hpp"

#include <algorithm>
#include <cmath>

namespace trireme::predict {

DataExchange::DataExchange(const Workload& workload, const Placement& placement, const Links& links)
    : workload_(workload),
      links_(links),
      place_(placement.group(workload.degrees.data * workload.degrees.context,
                             workload.degrees.tensor)) {}

CollectiveKind DataExchange::reduction() const {
  return workload_.program.sharding == Sharding::none ? CollectiveKind::all_reduce
                                                      : CollectiveKind::reduce_scatter;
}

double DataExchange::reduced_bytes(double elements) const {
  return elements * workload_.program.gradient_bytes;
}

double DataExchange::gathered_bytes(double elements) const {
  return elements * (workload_.program.precision == Precision::fp32 ? 4 : 2);
}

Time DataExchange::reduce(double elements) const {
  return links_.collective(reduction(), reduced_bytes(elements), place_);
}

Time DataExchange::gather(double elements) const {
  return links_.collective(CollectiveKind::all_gather, gathered_bytes(elements), place_);
}

double DataExchange::buckets(double elements) const {
  return std::max(1.0,
                  std::ceil(elements / static_cast<double>(workload_.program.bucket_elements)));
}

Time DataExchange::reduce_in_buckets(double elements) const {
  const double count = buckets(elements);
  return static_cast<Picoseconds>(count) * reduce(elements / count);
}

Time DataExchange::gather_in_buckets(double elements) const {
  const double count = buckets(elements);
  return static_cast<Picoseconds>(count) * gather(elements / count);
}

Time DataExchange::least_reduce(double elements) const {
  return links_.least_of_all(reduction(), reduced_bytes(elements), place_);
}

Time DataExchange::least_gather(double elements) const {
  return links_.least_of_all(CollectiveKind::all_gather, gathered_bytes(elements), place_);
}

StepEnd end_of_step(const Workload& workload, const OperationCosts& costs, const DataExchange& data,
                    double elements, Time norm) {
  const auto& program = workload.program;
  const bool divided = data.exists() && program.sharding != Sharding::none;
  const bool sums_here =
      data.exists() && !program.overlaps_data &&
      (program.sharding == Sharding::none || program.sharding == Sharding::optimizer);
  StepEnd end{.norm = norm};
  if (sums_here) end.reduce = data.reduce(elements);
  const double own = divided ? elements / data.size() : elements;
  end.update = costs.pass(own * program.update_bytes);
  if (program.update_flops > 0) end.update += costs.flops(program.update_flops);
  if (program.decomposition_flops > 0) {
    end.update += costs.decomposition(program.decomposition_flops);
  }
  if (divided && !program.overlaps_gathers && program.sharding != Sharding::parameters) {
    end.gather = data.gather(elements);
  }
  return end;
}

}  // namespace trireme::predict
