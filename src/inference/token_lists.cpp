// SPDX-License-Identifier: Apache-2.0
// Token ids in JSON, for `trireme probe`.
#include "trireme/base/format.hpp"
#include "trireme/base/json_text.hpp"
#include "trireme/inference/probe.hpp"

namespace trireme::inference {
namespace {

using base::format;
using base::Json;

base::Failure mistake(std::string_view source, const std::string& text) {
  return base::usage_failure(format("{}: {}", source, text));
}

base::Status check_shape(const Json& json, std::string_view source) {
  if (!json.is_array() || json.empty() || !json[0].is_array()) {
    return mistake(source,
                   "not a list of lists (each inner list is one sequence of token ids); write "
                   "[[1, 2, 3], [4, 5, 6]]");
  }
  const auto length = json[0].size();
  for (std::size_t index = 0; index < json.size(); ++index) {
    if (!json[index].is_array() || json[index].size() != length) {
      return mistake(source, format("list {} is not a list of {} ids as list 0 is (all sequences "
                                    "are computed together); make them equally long",
                                    index, length));
    }
  }
  if (length == 0) {
    return mistake(source, "the lists are empty (there is nothing to compute); give ids");
  }
  return {};
}

}  // namespace

base::Result<TokenLists> token_lists(const Json& json, std::int64_t vocab_size,
                                     std::string_view source) {
  if (auto status = check_shape(json, source); !status.ok()) return status.failure();
  TokenLists lists;
  lists.batch = static_cast<std::int64_t>(json.size());
  lists.sequence_length = static_cast<std::int64_t>(json[0].size());
  lists.ids.reserve(json.size() * json[0].size());
  for (std::size_t row = 0; row < json.size(); ++row) {
    for (std::size_t column = 0; column < json[row].size(); ++column) {
      const auto& id = json[row][column];
      const bool whole = id.is_number_unsigned();
      if (!whole || id.get<std::uint64_t>() >= static_cast<std::uint64_t>(vocab_size)) {
        return mistake(source,
                       format("id {} of list {} is {} (the model's vocabulary is 0 to {}); give "
                              "ids of this model's tokenizer",
                              column, row, base::json_text(id), vocab_size - 1));
      }
      lists.ids.push_back(static_cast<std::int32_t>(id.get<std::uint64_t>()));
    }
  }
  return lists;
}

}  // namespace trireme::inference
