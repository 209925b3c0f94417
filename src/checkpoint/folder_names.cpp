// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/folder_names.hpp"

#include "trireme/base/format.hpp"
#include "trireme/base/number.hpp"
#include "trireme/base/random_id.hpp"
#include "trireme/checkpoint/folders.hpp"

#include <algorithm>

namespace trireme::checkpoint {
namespace {

constexpr std::string_view step_prefix = "step-";
constexpr std::string_view temporary_mark = ".tmp-";
constexpr std::string_view replaced_mark = ".replaced-";

}  // namespace

std::string step_folder_name(std::int64_t step) {
  return base::format("step-{:09}", step);
}

std::optional<FolderName> parse_folder_name(std::string_view name) {
  if (!name.starts_with(step_prefix)) return std::nullopt;
  const auto digits = name.substr(step_prefix.size(), name.find('.') - step_prefix.size());
  const auto step = base::number_in<std::int64_t>(digits);
  if (!step || *step < 0) return std::nullopt;
  FolderName parsed{FolderKind::committed, *step};
  // Only the canonical form of a number is valid, so that no two folders are of one step.
  if (name.substr(0, step_prefix.size() + digits.size()) != step_folder_name(parsed.step)) {
    return std::nullopt;
  }
  const auto rest = name.substr(step_prefix.size() + digits.size());
  if (rest.empty()) return parsed;
  if (rest.starts_with(temporary_mark)) {
    parsed.kind = FolderKind::temporary;
  } else if (rest.starts_with(replaced_mark)) {
    parsed.kind = FolderKind::replaced;
  } else {
    return std::nullopt;
  }
  return parsed;
}

std::string temporary_name(std::int64_t step) {
  return base::format("{}{}{}", step_folder_name(step), temporary_mark, base::random_id());
}

bool is_id(std::string_view text) {
  return text.size() == 32 && std::all_of(text.begin(), text.end(), [](char letter) {
           return (letter >= '0' && letter <= '9') || (letter >= 'a' && letter <= 'f');
         });
}

std::string id_of_temporary(std::string_view name) {
  return std::string(name.substr(name.find(temporary_mark) + temporary_mark.size()));
}

std::string replaced_name(std::int64_t step) {
  return base::format("{}{}{}", step_folder_name(step), replaced_mark, base::random_id());
}

}  // namespace trireme::checkpoint
