// SPDX-License-Identifier: Apache-2.0
#include "data/tokenizer/text_ends.hpp"

#include "trireme/base/format.hpp"
#include "trireme/base/json.hpp"
#include "trireme/base/json_text.hpp"

#include <algorithm>
#include <array>
#include <vector>

namespace trireme::data {
namespace {

namespace fs = std::filesystem;
using base::format;
using base::Json;

constexpr std::array<std::string_view, 4> ends_of_text{"<|endoftext|>", "<|end_of_text|>", "</s>",
                                                       "<eos>"};
constexpr std::array<std::string_view, 3> ends_of_turn{"<|eot_id|>", "<|im_end|>", "<|eom_id|>"};

/// Files that name ids of tokens, in the order in which transformers asks them.
constexpr std::array<const char*, 2> files_of_ids{"generation_config.json", "config.json"};

constexpr auto or_name_one = " (trireme data prepare takes --end-of-text instead)";

/// Declaration of one file.
struct Declaration {
  std::string place;  ///< "DIR/config.json: eos_token_id"
  Json value;
  std::vector<std::int32_t> ids;
};

base::Failure refusal(const Declaration& said, std::string_view rule) {
  return {base::ExitCode::checkpoint,
          format("{} = {} {}", said.place, base::json_text(said.value), rule)};
}

base::Status take_id(const Json& json, const Tokenizer& tokenizer, Declaration& said) {
  if (!json.is_number_unsigned()) {
    return refusal(said,
                   "is no id of a token (an end of text is a whole number from 0, or a list of "
                   "them); correct the file");
  }
  const auto id = json.get<std::uint64_t>();
  const auto size = static_cast<std::uint64_t>(tokenizer.vocab_size());
  if (id >= size || !tokenizer.id_to_token(static_cast<std::int32_t>(id))) {
    return refusal(said, format("is no token of the tokenizer beside it, which has ids below {} "
                                "(texts would never end); correct one of the two files{}",
                                size, or_name_one));
  }
  said.ids.push_back(static_cast<std::int32_t>(id));
  return {};
}

base::Status take_ids(const Tokenizer& tokenizer, Declaration& said) {
  if (!said.value.is_array()) return take_id(said.value, tokenizer, said);
  for (const auto& each : said.value) {
    if (auto status = take_id(each, tokenizer, said); !status) return status;
  }
  return {};
}

base::Status take_text(const Tokenizer& tokenizer, Declaration& said) {
  // An added token is written with its properties.
  const Json& text =
      said.value.is_object() && said.value.contains("content") ? said.value["content"] : said.value;
  if (!text.is_string()) {
    return refusal(said, "is no token's text; correct the file");
  }
  const auto id = tokenizer.token_to_id(text.get<std::string>());
  if (!id) {
    return refusal(said,
                   format("is no token of the tokenizer beside it (texts would never end); correct "
                          "one of the two files{}",
                          or_name_one));
  }
  said.ids.push_back(*id);
  return {};
}

/// The object in a file; an empty one where there is no such file.
base::Result<Json> object_in(const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) return Json(Json::object());
  auto json = base::read_json_file(path, base::ExitCode::checkpoint);
  if (!json) return json.failure();
  if (!json->is_object()) {
    return base::Failure{base::ExitCode::checkpoint,
                         format("'{}' is not an object; fetch it again", path.string())};
  }
  return json;
}

base::Status add_texts(const fs::path& folder, const Tokenizer& tokenizer,
                       std::vector<Declaration>& all) {
  auto path = folder / "tokenizer_config.json";
  auto json = object_in(path);
  if (!json) return json.failure();
  // Older folders, which transformers knows by this: the map of special tokens comes first.
  if (!json->contains("added_tokens_decoder")) {
    auto map = object_in(folder / "special_tokens_map.json");
    if (!map) return map.failure();
    if (map->contains("eos_token")) {
      path = folder / "special_tokens_map.json";
      json = std::move(map);
    }
  }
  const auto value = json->value("eos_token", Json());
  if (value.is_null()) return {};
  all.push_back({format("{}: eos_token", path.string()), value, {}});
  return take_text(tokenizer, all.back());
}

base::Result<std::vector<Declaration>> declarations(const fs::path& folder,
                                                    const Tokenizer& tokenizer) {
  std::vector<Declaration> all;
  for (const auto* name : files_of_ids) {
    const auto path = folder / name;
    const auto json = object_in(path);
    if (!json) return json.failure();
    const auto value = json->value("eos_token_id", Json());
    if (value.is_null()) continue;
    all.push_back({format("{}: eos_token_id", path.string()), value, {}});
    if (auto status = take_ids(tokenizer, all.back()); !status) return status.failure();
    if (all.back().ids.empty()) all.pop_back();
  }
  if (auto status = add_texts(folder, tokenizer, all); !status) return status.failure();
  return all;
}

}  // namespace

base::Result<std::optional<TextEnds>> declared_ends(const fs::path& folder,
                                                    const Tokenizer& tokenizer) {
  const auto all = declarations(folder, tokenizer);
  if (!all) return all.failure();
  if (all->empty()) return std::optional<TextEnds>();
  const auto& first = all->front();
  TextEnds ends{first.ids, first.place, {}, first.ids.front()};
  for (const auto& other : *all) {
    const bool agrees = std::any_of(other.ids.begin(), other.ids.end(), [&](std::int32_t id) {
      return std::find(ends.ids.begin(), ends.ids.end(), id) != ends.ids.end();
    });
    if (!agrees)
      ends.overruled.push_back(format("{} = {}", other.place, base::json_text(other.value)));
  }
  return std::optional(std::move(ends));
}

TextEnds usual_ends(const Tokenizer& tokenizer) {
  const auto& added = tokenizer.added_tokens();
  TextEnds ends;
  const auto add = [&](std::string_view name) {
    const auto found = std::find_if(added.begin(), added.end(), [&](const AddedToken& token) {
      return token.special && token.content == name;
    });
    if (found != added.end()) ends.ids.push_back(found->id);
  };
  for (const auto name : ends_of_text) add(name);
  ends.document_end = ends.ids.empty() ? std::nullopt : std::optional(ends.ids.front());
  for (const auto name : ends_of_turn) add(name);
  return ends;
}

}  // namespace trireme::data
