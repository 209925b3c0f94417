// SPDX-License-Identifier: Apache-2.0
// Every row of the table of fields: a value that must change the result, be refused or be named.
#include "huggingface/folder_fields.hpp"

#include "trireme/base/file.hpp"
#include "trireme/base/json_text.hpp"
#include "trireme/huggingface/config.hpp"
#include "trireme/huggingface/folder_warnings.hpp"

#include "support/temporary_folder.hpp"
#include "unit/huggingface/field_examples.hpp"
#include "unit/huggingface/fields_page.hpp"
#include "unit/model/published.hpp"

#include <catch2/catch.hpp>

#include <set>

using namespace trireme;
using namespace trireme::tests;
using base::Json;
using huggingface::FieldPlace;
using huggingface::FolderField;
using huggingface::Treatment;
using model::Architecture;

namespace {

constexpr Architecture families[] = {Architecture::gpt2, Architecture::llama, Architecture::qwen3};
const std::string where = "DIR/config.json";
const std::filesystem::path sources = TRIREME_SOURCE_DIR;
const auto page_path = sources / "docs/huggingface-fields.md";

/// config.json of a family with one form of every setting.
Json base_config(Architecture family) {
  if (family == Architecture::gpt2) {
    auto json = huggingface::config_json(gpt2_124m());
    json.erase("n_ctx");
    return json;
  }
  auto config = family == Architecture::llama ? llama3_8b() : qwen3_06b();
  config.rope_scaling = llama3_8b().rope_scaling;
  auto json = huggingface::config_json(config);
  json.erase("rope_theta");
  json.erase("rope_scaling");
  return json;
}

Example example_of(const FolderField& field, Architecture family) {
  // Rows that name no value of their own are tried with one that nothing takes.
  if (field.treatment == Treatment::refused || field.treatment == Treatment::warned) {
    return {0.123};
  }
  if (field.treatment == Treatment::ignored) return {"anything"};
  const std::string name(field.name);
  const auto& all = examples();
  const auto prefix = field.place == FieldPlace::rope ? std::string("rope/")
                                                      : std::string(model::name(family)) + "/";
  if (const auto own = all.find(prefix + name); own != all.end()) return own->second;
  const auto found = all.find(name);
  INFO("the row " << name << " needs an example in this test");
  REQUIRE(found != all.end());
  return found->second;
}

/// Outcome of an object: the result as text, or a failure; and warnings.
struct Outcome {
  std::string result;
  std::string failure;
  std::vector<std::string> warnings = {};

  bool names(std::string_view name) const {
    for (const auto& text : warnings) {
      if (text.find(std::string(name) + " = ") != std::string::npos ||
          text.find("<NEW>") != std::string::npos) {
        return true;
      }
    }
    return false;
  }
};

Outcome parsed(const Json& json) {
  Outcome outcome;
  const auto model = huggingface::parse_config(json, where, &outcome.warnings);
  if (model) {
    outcome.result = base::json_text(huggingface::config_json(*model));
  } else {
    outcome.failure = model.failure().text;
  }
  return outcome;
}

/// A folder with a tokenizer and one more file.
Outcome with_file(const char* name, const Json& json) {
  const TemporaryFolder folder;
  const auto golden = sources / "tests/golden/tokenizer/gpt2.json";
  std::filesystem::copy_file(golden, folder.path() / "tokenizer.json");
  base::write_file_durably(folder.path() / name, base::json_text(json));
  Outcome outcome;
  const auto tokenizer = data::Tokenizer::load(folder.path() / "tokenizer.json");
  if (!tokenizer) {
    outcome.failure = tokenizer.failure().text;
    return outcome;
  }
  outcome.result = base::json_text(Json(tokenizer->text_ends().ids));
  outcome.warnings = huggingface::generation_warnings(folder.path());
  for (auto& text : huggingface::tokenizer_warnings(folder.path(), *tokenizer)) {
    outcome.warnings.push_back(std::move(text));
  }
  return outcome;
}

Json without(Json json, const Example& example) {
  for (const auto& name : example.without) json.erase(name);
  return json;
}

/// Outcomes without and with the example's value.
std::pair<Outcome, Outcome> tried(const FolderField& field, Architecture family) {
  const auto example = example_of(field, family);
  const std::string name(field.name);
  Json before = base_config(family);
  const bool of_tokens = name == "eos_token_id";
  switch (field.place) {
    case FieldPlace::config: {
      if (of_tokens) {
        return {with_file("config.json", Json::object()),
                with_file("config.json", {{name, example.value}})};
      }
      Json after = without(before, example);
      after[name] = example.value;
      return {parsed(before), parsed(after)};
    }
    case FieldPlace::rope: {
      Json after = before;
      after["rope_parameters"] = without(after["rope_parameters"], example);
      after["rope_parameters"][name] = example.value;
      return {parsed(before), parsed(after)};
    }
    case FieldPlace::generation:
      return {with_file("generation_config.json", Json::object()),
              with_file("generation_config.json", {{name, example.value}})};
    case FieldPlace::tokenizer:
      return {with_file("tokenizer_config.json", Json::object()),
              with_file("tokenizer_config.json", {{name, example.value}})};
  }
  return {};
}

void check_row(const FolderField& field, Architecture family) {
  const auto [before, after] = tried(field, family);
  CAPTURE(field.name, model::name(family), after.failure, after.warnings);
  REQUIRE(before.failure.empty());
  CHECK(before.warnings.empty());
  const bool names_it = after.failure.find(field.name) != std::string::npos;
  if (!after.failure.empty()) CHECK(after.failure.starts_with(where + ": "));
  switch (field.treatment) {
    case Treatment::read:
      CHECK((after.failure.empty() ? after.result != before.result : names_it));
      break;
    case Treatment::checked:
      CHECK((after.failure.empty() ? after.names(field.name) : names_it));
      break;
    case Treatment::refused:
      CHECK(names_it);
      CHECK_THAT(after.failure, Catch::Contains("0.123"));
      break;
    case Treatment::warned:
      CHECK(after.failure.empty());
      CHECK(after.names(field.name));
      CHECK(after.result == before.result);
      break;
    case Treatment::ignored:
      CHECK(after.failure.empty());
      CHECK(after.warnings.empty());
      CHECK(after.result == before.result);
      break;
  }
}

std::vector<FolderField> all_fields() {
  std::vector<FolderField> all;
  for (const auto table : {huggingface::config_fields(), huggingface::generation_fields(),
                           huggingface::tokenizer_fields()}) {
    all.insert(all.end(), table.begin(), table.end());
  }
  return all;
}

}  // namespace

TEST_CASE("every row of the table of fields does what it says") {
  std::size_t tried_rows = 0;
  for (const auto& field : all_fields()) {
    for (const auto family : families) {
      if (huggingface::find_field(field.place, field.name, family) == nullptr) continue;
      check_row(*huggingface::find_field(field.place, field.name, family), family);
      ++tried_rows;
      // Other files know no families.
      if (field.place != FieldPlace::config && field.place != FieldPlace::rope) break;
    }
  }
  CHECK(tried_rows > 250);
}

TEST_CASE("null is refused by name in every row that is read, or as absent where its row says so") {
  const std::set<std::string> as_absent{"gpt2/n_inner",
                                        "llama/num_key_value_heads",
                                        "llama/head_dim",
                                        "llama/rope_theta",
                                        "llama/rope_parameters",
                                        "llama/rope_scaling",
                                        "llama/eos_token_id",
                                        "gpt2/eos_token_id",
                                        "llama/original_max_position_embeddings",
                                        "qwen3/rope_parameters",
                                        "qwen3/rope_scaling",
                                        "qwen3/original_max_position_embeddings",
                                        "qwen3/rope_theta",
                                        "qwen3/eos_token_id",
                                        "rope/type"};
  for (const auto& field : huggingface::config_fields()) {
    for (const auto family : families) {
      if (huggingface::find_field(field.place, field.name, family) != &field) continue;
      if (field.treatment != Treatment::read) continue;
      const std::string name(field.name);
      const bool in_rope = field.place == FieldPlace::rope;
      const auto row = (in_rope ? "rope" : std::string(model::name(family))) + "/" + name;
      CAPTURE(row);
      if (row == "qwen3/num_key_value_heads") continue;  // the row gives null a meaning of its own
      auto absent = base_config(family);
      (in_rope ? absent["rope_parameters"] : absent).erase(name);
      auto null = absent;
      (in_rope ? null["rope_parameters"] : null)[name] = nullptr;
      const auto outcome = parsed(null);
      if (as_absent.contains(row)) {
        CHECK(outcome.failure.empty());
        CHECK(outcome.result == parsed(absent).result);
      } else {
        CHECK_THAT(outcome.failure, Catch::Contains(name));
      }
    }
  }
}

TEST_CASE("values that the table takes are taken") {
  for (const auto& field : all_fields()) {
    if (field.treatment != Treatment::refused && field.treatment != Treatment::warned) continue;
    for (const auto& value : Json::parse(field.value)) {
      for (const auto family : families) {
        if (huggingface::find_field(field.place, field.name, family) == nullptr) continue;
        std::vector<std::string> warnings;
        CAPTURE(field.name, base::json_text(value));
        const Json object{{std::string(field.name), value}};
        CHECK(huggingface::check_fields(object, field.place, family, where, warnings).ok());
        CHECK(warnings.empty());
      }
    }
  }
}

TEST_CASE("a field has one row in a place and a family") {
  std::set<std::string> seen;
  for (const auto& field : all_fields()) {
    for (const auto family : families) {
      if (huggingface::find_field(field.place, field.name, family) == nullptr) continue;
      if (field.families != "all" &&
          field.families.find(model::name(family)) == std::string_view::npos) {
        continue;
      }
      const auto key = std::to_string(static_cast<int>(field.place)) + "/" + model::name(family) +
                       "/" + std::string(field.name);
      CAPTURE(key);
      CHECK(seen.insert(key).second);
    }
  }
}

TEST_CASE("fields that the table does not have are named") {
  for (const auto family : families) {
    auto json = base_config(family);
    json["logit_softening"] = 0.5;
    const auto outcome = parsed(json);
    CHECK(outcome.failure.empty());
    CHECK(outcome.names("logit_softening"));
  }
  CHECK(with_file("generation_config.json", {{"new_rule", 1}}).names("new_rule"));
  CHECK(with_file("tokenizer_config.json", {{"new_rule", 1}}).names("new_rule"));
  // Fields of generation in older files are treated as there.
  auto json = base_config(Architecture::llama);
  json["repetition_penalty"] = 1.0;
  CHECK(parsed(json).warnings.empty());
  json["repetition_penalty"] = 1.1;
  CHECK(parsed(json).names("repetition_penalty"));
}

TEST_CASE("docs/huggingface-fields.md is what the table says") {
  const auto page = base::read_text_file(page_path);
  REQUIRE(page.ok());
  INFO("write it again: unit_huggingface '[.write-fields]'");
  CHECK(*page == folder_fields_page());
}

// Hidden: run it by its tag after a change of the table.
TEST_CASE("writes docs/huggingface-fields.md", "[.write-fields]") {
  base::write_file_durably(page_path, folder_fields_page());
}
