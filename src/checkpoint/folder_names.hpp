// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace trireme::checkpoint {

/// Kind of a folder beside the steps, by its name.
enum class FolderKind {
  committed,  ///< "step-000001200"
  temporary,  ///< "step-000001200.tmp-<uuid>": being written, being removed, or left by a crash
  replaced,   ///< "step-000001200.replaced-<uuid>": a step set aside while its successor moves in
};
struct FolderName {
  FolderKind kind;
  std::int64_t step;
};
std::optional<FolderName> parse_folder_name(std::string_view name);

std::string temporary_name(std::int64_t step);
/// The <uuid> of such a name: lower-case letters and digits.
std::string id_of_temporary(std::string_view name);
/// True for a text that may be such an ID.
bool is_id(std::string_view text);
std::string replaced_name(std::int64_t step);

}  // namespace trireme::checkpoint
