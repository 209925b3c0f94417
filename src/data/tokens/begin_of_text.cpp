// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/format.hpp"
#include "trireme/data/prepare.hpp"

namespace trireme::data {
namespace {

std::string tokens_text(const Tokenizer& tokenizer, const std::vector<std::int32_t>& ids) {
  std::vector<std::string> tokens;
  for (const auto id : ids) {
    tokens.push_back(tokenizer.id_to_token(id).value_or(base::format("token {}", id)));
  }
  return ids.empty() ? "no token of their own" : base::format("{}", base::join(tokens, " "));
}

/// PREFIX of PREFIX, PREFIX.bin and PREFIX.idx.
std::filesystem::path prefix_of(const std::filesystem::path& token_file) {
  const auto ending = token_file.extension();
  auto prefix = token_file;
  return ending == ".bin" || ending == ".idx" ? prefix.replace_extension() : prefix;
}

}  // namespace

std::optional<std::string> difference_in_begin(std::span<const std::filesystem::path> token_files,
                                               const Tokenizer& tokenizer) {
  for (const auto& file : token_files) {
    const auto facts = read_facts(prefix_of(file));
    if (!facts || !*facts || (*facts)->begin_of_text == tokenizer.ids_before_text()) continue;
    return base::format(
        "documents of '{}' begin with {}, prompts with {} (a model continues best what it was "
        "trained on); prepare them with this version of trireme and this tokenizer{}",
        file.string(), tokens_text(tokenizer, (*facts)->begin_of_text),
        tokens_text(tokenizer, tokenizer.ids_before_text()),
        tokenizer.ids_before_text().empty() ? "" : ", without --no-special-tokens");
  }
  return std::nullopt;
}

}  // namespace trireme::data
