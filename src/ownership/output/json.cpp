// SPDX-License-Identifier: Apache-2.0
#include "trireme/ownership/picture.hpp"

#include <cmath>
#include <cstdint>

namespace trireme::ownership {
namespace {

using base::Json;

std::int64_t whole(double bytes) {
  return std::llround(bytes);
}

Json step_json(const StepPrice& price) {
  return {{"reduce", 1e3 * price.reduce},   {"exchange", 1e3 * price.exchange},
          {"compute", 1e3 * price.compute}, {"launch", 1e3 * price.launch},
          {"gather", 1e3 * price.gather},   {"update", 1e3 * price.update()},
          {"total", 1e3 * price.total()}};
}

Json matrix_json(const MatrixOwner& owner, const OwnedTensor& tensor) {
  Json json{{"name", tensor.name},
            {"rows", tensor.shape.rows},
            {"columns", tensor.shape.columns},
            {"owner", Json::array()}};
  for (const auto& range : owner.ranges) json["owner"].push_back(range.rank);
  if (!owner.is_shared()) {
    json["flops"] = tensor.flops;
    return json;
  }
  json["flops"] = tensor.split.of_column() * static_cast<double>(tensor.shape.longer()) +
                  tensor.split.of_squares();
  json["ranges"] = Json::array();
  for (const auto& range : owner.ranges) json["ranges"].push_back({range.begin, range.end});
  json["square"] = owner.square_ranks;
  return json;
}

}  // namespace

Json json(const View& view) {
  const auto& [plan, price] = view.choice.chosen;
  Json json;
  json["optimizer"] = view.optimizer;
  json["assignment"] = name(plan.assignment);
  json["ranks"] = plan.ranks();
  json["data_parallel"] = plan.data;
  json["tensor_parallel"] = plan.tensor;
  json["max_over_mean"] = plan.max_over_mean();
  json["padding"] = plan.padding();
  json["bytes_on_wire"] = whole(bytes_on_wire(plan, view.work.parameter_bytes));
  json["bytes_exchanged"] = whole(exchange_bytes(plan, view.tensors, view.work.parameter_bytes));
  json["buckets"] = plan.buckets.size();
  json["reason"] = view.choice.reason;
  json["step_ms"] = step_json(price);
  json["adamw"] = {
      {"bytes_on_wire", whole(bytes_on_wire(view.adamw.plan, view.work.parameter_bytes))},
      {"step_ms", step_json(view.adamw.price)}};
  json["load"] = plan.load;
  json["matrices"] = Json::array();
  for (const auto& owner : plan.matrices) {
    json["matrices"].push_back(matrix_json(owner, view.tensors[owner.tensor]));
  }
  return json;
}

}  // namespace trireme::ownership
