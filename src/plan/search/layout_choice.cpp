// SPDX-License-Identifier: Apache-2.0
#include "trireme/plan/layout_choice.hpp"

#include "trireme/base/format.hpp"
#include "trireme/base/suggest.hpp"
#include "trireme/base/text.hpp"

#include <algorithm>

namespace trireme::plan {
namespace {

/// A setting of a layout, by its short word and by the key that sets it.
struct ChoiceRow {
  std::string_view word;
  /// Empty for what follows from the others.
  std::string_view key;
  std::string (*value)(const LayoutChoice& choice);
  /// Shown where it is as by default, too.
  bool always = false;
};

constexpr std::string_view recompute_word = "again";

std::string yes_or_no(bool value) {
  return value ? "true" : "false";
}

constexpr std::array rows{
    ChoiceRow{"tp", "parallel.tensor",
              [](const LayoutChoice& choice) { return base::format("{}", choice.tensor); }, true},
    ChoiceRow{"pp", "parallel.pipeline",
              [](const LayoutChoice& choice) { return base::format("{}", choice.pipeline); }, true},
    ChoiceRow{"dp", "",
              [](const LayoutChoice& choice) { return base::format("{}", choice.data()); }, true},
    ChoiceRow{"v", "parallel.virtual_stages",
              [](const LayoutChoice& choice) { return base::format("{}", choice.virtual_stages); }},
    ChoiceRow{
        "schedule", "parallel.schedule",
        [](const LayoutChoice& choice) { return std::string(layout::name(choice.schedule)); }},
    ChoiceRow{"mbs", "train.micro_batch",
              [](const LayoutChoice& choice) { return base::format("{}", choice.micro_batch); },
              true},
    ChoiceRow{"sp", "parallel.sequence",
              [](const LayoutChoice& choice) { return yes_or_no(choice.sequence); }},
    ChoiceRow{"zero", "parallel.zero_level",
              [](const LayoutChoice& choice) { return base::format("{}", choice.zero_level); }},
    ChoiceRow{recompute_word, "train.activation_checkpointing",
              [](const LayoutChoice& choice) { return choice.recompute.text(); }},
};

/// Commas separate settings.
std::string short_value(const ChoiceRow& row, const LayoutChoice& choice) {
  auto value = row.value(choice);
  std::replace(value.begin(), value.end(), ',', '+');
  return value;
}

const ChoiceRow* row_of(std::string_view word) {
  const auto* const found = std::find_if(rows.begin(), rows.end(),
                                         [&](const ChoiceRow& row) { return row.word == word; });
  return found == rows.end() ? nullptr : found;
}

base::Failure unknown_word(std::string_view text) {
  std::vector<std::string> words;
  for (const auto& row : rows) words.emplace_back(row.word);
  const auto word = text.substr(0, text.find('='));
  return base::usage_failure(base::format(
      "--why: {} is no setting of a layout (it is a list of word=value: {}); write tp=4,pp=8{}",
      base::shown(text), base::join(words, ", "), base::did_you_mean(word, words)));
}

}  // namespace

LayoutChoice::Order LayoutChoice::order() const {
  Order order{
      ranks,       tensor,           pipeline,  virtual_stages, static_cast<std::int64_t>(schedule),
      micro_batch, sequence ? 1 : 0, zero_level};
  for (std::size_t kind = 0; kind < config::activation_count; ++kind) {
    order[8 + kind] = recompute.layers(static_cast<config::Activation>(kind));
  }
  return order;
}

schema::Options with_layout(schema::Options keys, const LayoutChoice& choice) {
  auto& parallel = keys.parallel;
  parallel.tensor = choice.tensor;
  parallel.pipeline = choice.pipeline;
  parallel.data.reset();
  parallel.sequence = choice.sequence;
  parallel.schedule = choice.schedule;
  parallel.virtual_stages = choice.virtual_stages;
  parallel.stage_layers.clear();
  parallel.zero_level = choice.zero_level;
  keys.train.micro_batch = choice.micro_batch;
  const auto text = choice.recompute.text();
  auto& again = keys.train.activation_checkpointing.emplace();
  for (const auto entry : base::split(text, ',')) again.emplace_back(entry);
  return keys;
}

std::string text(const LayoutChoice& choice) {
  const LayoutChoice standard;
  std::vector<std::string> words;
  for (const auto& row : rows) {
    if (!row.always && row.value(choice) == row.value(standard)) continue;
    words.push_back(base::format("{}={}", row.word, short_value(row, choice)));
  }
  return base::format("{}", base::join(words, ","));
}

std::string settings_text(const LayoutChoice& choice, const schema::Options& keys) {
  std::string lines;
  std::string_view section;
  const auto add = [&](std::string_view key, const std::string& value) {
    const auto dot = key.find('.');
    if (key.substr(0, dot) != section) {
      section = key.substr(0, dot);
      lines += base::format("[{}]\n", section);
    }
    lines += base::format("{} = {}\n", key.substr(dot + 1), value);
  };
  // In the order of sections, which rows are not.
  for (const std::string_view wanted : {"parallel.", "train."}) {
    for (const auto& row : rows) {
      if (row.key.starts_with(wanted)) add(row.key, row.value(choice));
    }
    if (wanted != "parallel.") continue;
    if (keys.parallel.data) add("parallel.data", "auto");
    if (!keys.parallel.stage_layers.empty()) add("parallel.stage_layers", "");
  }
  if (keys.numerics.on_gpus()) add("numerics.backend", "cuda");
  return lines;
}

base::Json settings_json(const LayoutChoice& choice) {
  base::Json json = base::Json::object();
  for (const auto& row : rows) {
    if (!row.key.empty()) json[std::string(row.key)] = row.value(choice);
  }
  return json;
}

base::Result<LayoutFilter> LayoutFilter::parse(std::string_view text) {
  LayoutFilter filter;
  for (const auto part : base::split(text, ',')) {
    const auto equals = part.find('=');
    const auto word = base::trimmed(part.substr(0, equals));
    if (equals == std::string_view::npos || row_of(word) == nullptr) return unknown_word(part);
    filter.wanted_.emplace_back(word, base::trimmed(part.substr(equals + 1)));
  }
  if (filter.wanted_.empty()) return unknown_word("");
  return filter;
}

bool LayoutFilter::matches(const LayoutChoice& choice) const {
  return std::all_of(wanted_.begin(), wanted_.end(), [&](const auto& wanted) {
    return short_value(*row_of(wanted.first), choice) == wanted.second;
  });
}

bool LayoutFilter::matches_arrangement(const LayoutChoice& choice) const {
  return std::all_of(wanted_.begin(), wanted_.end(), [&](const auto& wanted) {
    return wanted.first == recompute_word ||
           short_value(*row_of(wanted.first), choice) == wanted.second;
  });
}

int settings_changed(const LayoutChoice& from, const LayoutChoice& to) {
  return int{from.tensor != to.tensor} + int{from.pipeline != to.pipeline} +
         int{from.virtual_stages != to.virtual_stages} + int{from.schedule != to.schedule} +
         int{from.micro_batch != to.micro_batch} + int{from.sequence != to.sequence} +
         int{from.zero_level != to.zero_level} + int{from.recompute != to.recompute} +
         int{from.ranks != to.ranks};
}

std::vector<std::string> differences(const LayoutChoice& from, const LayoutChoice& to) {
  std::vector<std::string> words;
  if (from.ranks != to.ranks) words.push_back(base::format("{} ranks", to.ranks));
  for (const auto& row : rows) {
    if (row.key.empty() || row.value(from) == row.value(to)) continue;
    words.push_back(base::format("{}={}", row.word, short_value(row, to)));
  }
  return words;
}

}  // namespace trireme::plan
