// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/ownership/plan.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace trireme::tests {

inline constexpr auto standard = ownership::NewtonSchulzForm::standard;
inline constexpr auto gram = ownership::NewtonSchulzForm::gram_symmetric;

/// Matrix of a layer under Muon. It can be shared in its cheapest form alone, which
/// `gram_symmetric` stands for.
inline ownership::OwnedTensor matrix(const std::string& name, std::int64_t rows,
                                     std::int64_t columns, ownership::NewtonSchulzForm form,
                                     int tensor = 1) {
  ownership::OwnedTensor owned;
  owned.name = name;
  owned.shape = {rows, columns};
  if (form == ownership::NewtonSchulzForm::gram_symmetric) {
    form = ownership::cheapest_newton_schulz_form(owned.shape);
    owned.split = ownership::split_newton_schulz(owned.shape);
  }
  owned.flops = ownership::newton_schulz_flops(form, owned.shape);
  owned.held_elements = (rows * columns + tensor - 1) / tensor;
  return owned;
}

inline ownership::OwnedTensor vector(const std::string& name, std::int64_t elements) {
  ownership::OwnedTensor owned;
  owned.name = name;
  owned.shape = {elements, 0};
  owned.held_elements = elements;
  return owned;
}

struct ModelSizes {
  const char* name;
  int layers;
  std::int64_t hidden;
  std::int64_t queries;  ///< rows of q
  std::int64_t keys;
  std::int64_t intermediate;
  bool tied;
};

/// Qwen3's dense models (Qwen team 2025).
inline constexpr ModelSizes qwen3_sizes[] = {
    {"0.6B", 28, 1024, 2048, 1024, 3072, true},  {"1.7B", 28, 2048, 2048, 1024, 6144, true},
    {"4B", 36, 2560, 4096, 1024, 9728, true},    {"8B", 36, 4096, 4096, 1024, 12288, false},
    {"14B", 40, 5120, 5120, 1024, 17408, false}, {"32B", 64, 5120, 8192, 1024, 25600, false}};

/// In the order of backward; norms left out.
inline std::vector<ownership::OwnedTensor> tensors_of(const ModelSizes& sizes,
                                                      ownership::NewtonSchulzForm form,
                                                      int tensor = 1) {
  std::vector<ownership::OwnedTensor> tensors;
  const auto table = 151936 * sizes.hidden / tensor;
  if (!sizes.tied) tensors.push_back(vector("head", table));
  for (int layer = sizes.layers - 1; layer >= 0; --layer) {
    const auto add = [&](const char* name, std::int64_t rows, std::int64_t columns) {
      tensors.push_back(matrix(std::to_string(layer) + name, rows, columns, form, tensor));
    };
    add("q", sizes.queries, sizes.hidden);
    add("k", sizes.keys, sizes.hidden);
    add("v", sizes.keys, sizes.hidden);
    add("o", sizes.hidden, sizes.queries);
    add("gate", sizes.intermediate, sizes.hidden);
    add("up", sizes.intermediate, sizes.hidden);
    add("down", sizes.hidden, sizes.intermediate);
  }
  tensors.push_back(vector("embedding", table));
  return tensors;
}

/// q, k, v and gate, up as one product reads them.
inline std::vector<ownership::OwnedTensor> joined(std::vector<ownership::OwnedTensor> tensors) {
  for (auto& tensor : tensors) {
    const auto kind = tensor.name.substr(
        std::min(tensor.name.size(), tensor.name.find_first_not_of("0123456789")));
    tensor.joined = kind == "k" || kind == "v" || kind == "up";
  }
  return tensors;
}

inline ownership::PlanOptions of_degrees(int data, int tensor = 1) {
  ownership::PlanOptions options;
  options.data = data;
  options.tensor = tensor;
  return options;
}

}  // namespace trireme::tests
