// SPDX-License-Identifier: Apache-2.0
#include "trireme/launch/options.hpp"

#include "trireme/base/format.hpp"
#include "trireme/base/suggest.hpp"
#include "trireme/schema/layout_keys.hpp"
#include "trireme/schema/schema.hpp"
#include "trireme/schema/value.hpp"

#include "text.hpp"

#include <algorithm>
#include <limits>

namespace trireme::launch {
namespace {

using base::format;

constexpr std::size_t longest_value = 4096;

/// Option of a key: it takes the key's values, in strict form. Times are whole seconds.
Option of_key(std::string_view name, std::string_view variable, std::string_view key_name,
              std::string_view usage) {
  const auto* const key = schema::find_key(key_name);
  TRIREME_ENSURE(key != nullptr, key_name);
  Option option{.name = name, .variable = variable, .key = key_name, .usage = usage};
  option.words.assign(key->choices.begin(), key->choices.end());
  if (key->choices.empty()) {
    constexpr double largest = std::numeric_limits<int>::max();
    option.minimum = static_cast<int>(key->range.minimum.value_or(0));
    option.maximum = static_cast<int>(std::min(key->range.maximum.value_or(largest), largest));
  }
  if (key->allows_auto()) option.words.emplace_back("auto");
  std::vector<std::string> forms;
  if (option.is_number() && option.maximum - option.minimum < 8) {
    for (int number = option.minimum; number <= option.maximum; ++number) {
      forms.push_back(format("{}", number));
    }
  } else if (option.is_number()) {
    forms.emplace_back(key->type == schema::Type::seconds ? "SECONDS" : "N");
  }
  forms.insert(forms.end(), option.words.begin(), option.words.end());
  option.argument = format("{}", base::join(forms, "|"));
  return option;
}

/// Everything that a start chooses for its ranks: settings of layouts, and replicas.
std::vector<std::string> chosen_keys() {
  const auto settings = schema::layout_keys();
  std::vector<std::string> keys(settings.begin(), settings.end());
  keys.emplace_back("parallel.data");
  return keys;
}

std::vector<Option> all_options() {
  return {
      {.name = "trireme",
       .variable = "TRIREME_LAUNCH",
       .usage = "prepare tasks for trireme; off ignores what the job asks for",
       .words = {"on", "off"},
       .argument = "on|off"},
      // Before those of single keys, whose values win.
      {.name = "parallel",
       .variable = "TRIREME_PARALLEL",
       .keys = chosen_keys(),
       .usage = "let the job choose its layout when it starts, but for what other options set",
       .words = {"auto"},
       .argument = "auto"},
      of_key("tensor-parallel", "TRIREME_TENSOR_PARALLEL", "parallel.tensor",
             "ranks that share every matrix, inside a node"),
      of_key("pipeline-parallel", "TRIREME_PIPELINE_PARALLEL", "parallel.pipeline",
             "stages that share the layers"),
      of_key("data-parallel", "TRIREME_DATA_PARALLEL", "parallel.data",
             "replicas that share the global batch (auto: what is left)"),
      of_key("zero-level", "TRIREME_ZERO_LEVEL", "parallel.zero_level",
             "what replicas divide among themselves"),
      of_key("micro-batch", "TRIREME_MICRO_BATCH", "train.micro_batch", "sequences of one forward"),
      of_key("trireme-order", "TRIREME_ORDER", "run.order",
             "order of ranks: by the network, or as Slurm numbers tasks"),
      of_key("trireme-binding", "TRIREME_BINDING", "run.binding",
             "whether each rank is bound to cores of its own"),
      of_key("trireme-signal-lead", "TRIREME_SIGNAL_LEAD", "run.signal_lead",
             "how long before the time limit the job saves and stops"),
      {.name = "trireme-set",
       .variable = "TRIREME_SET",
       .usage = "set a key of the configuration; may be repeated",
       .sets_any_key = true,
       .argument = "section.key=value"},
  };
}

std::vector<std::string> choices_near(const Option& option) {
  std::vector<std::string> choices(option.words.begin(), option.words.end());
  if (!option.is_number()) return choices;
  if (option.maximum - option.minimum < 8) {
    for (int number = option.minimum; number <= option.maximum; ++number) {
      choices.push_back(format("{}", number));
    }
    return choices;
  }
  choices.push_back(format("{}", std::max(option.minimum, 1)));
  choices.push_back(format("{}", std::max(option.minimum, 1) * 2));
  return choices;
}

base::Failure refused(const Option& option, std::string_view text, std::string_view place) {
  const auto near = choices_near(option);
  const auto word = base::nearest_word(text, near);
  const auto advice = word && !is_digit(word->front()) ? format("did you mean {}?", *word)
                                                       : format("try {}", base::join(near, ", "));
  return base::usage_failure(format("{} = {} is not {} ({}); {}", place, shown(text),
                                    permitted_text(option), option.usage, advice));
}

base::Result<std::string> parse_setting(std::string_view text, std::string_view place) {
  const auto equals = text.find('=');
  const auto name = trimmed(text.substr(0, equals));
  const auto dot = name.find('.');
  const bool named = dot != std::string_view::npos && dot > 0 && dot + 1 < name.size() &&
                     std::all_of(name.begin(), name.end(), [](char letter) {
                       return is_lower_or_digit(letter) || letter == '_' || letter == '.';
                     });
  if (equals == std::string_view::npos || !named) {
    return base::usage_failure(
        format("{} = {} is not section.key=value (it names one key of the configuration); write "
               "for example --trireme-set=train.steps=100",
               place, shown(text)));
  }
  return std::string(name) + "=" + std::string(trimmed(text.substr(equals + 1)));
}

}  // namespace

std::span<const Option> options() {
  static const auto all = all_options();
  return all;
}

const Option* find_option(std::string_view name) {
  const auto found = std::find_if(options().begin(), options().end(),
                                  [&](const Option& option) { return option.name == name; });
  return found == options().end() ? nullptr : &*found;
}

std::string permitted_text(const Option& option) {
  if (option.sets_any_key) return "section.key=value";
  std::vector<std::string> parts;
  if (option.is_number()) {
    parts.push_back(option.maximum == std::numeric_limits<int>::max()
                        ? format("a number of at least {}", option.minimum)
                        : format("a number from {} to {}", option.minimum, option.maximum));
  }
  parts.insert(parts.end(), option.words.begin(), option.words.end());
  return format("{}", base::join(parts, " or "));
}

base::Result<std::string> parse_value(const Option& option, std::string_view text,
                                      std::string_view place) {
  if (text.size() > longest_value) {
    return base::usage_failure(format("{} has {} bytes (at most {} are read); shorten it", place,
                                      text.size(), longest_value));
  }
  if (std::any_of(text.begin(), text.end(), is_control)) {
    return base::usage_failure(
        format("{} = {} has a control character (no value has one); write it without", place,
               shown(text)));
  }
  text = trimmed(text);
  if (option.sets_any_key) return parse_setting(text, place);
  if (std::find(option.words.begin(), option.words.end(), text) != option.words.end()) {
    return std::string(text);
  }
  const auto number = parse_number(text);
  if (!option.is_number() || !number || *number < option.minimum || *number > option.maximum) {
    return refused(option, text, place);
  }
  // The key's type may have limits of its own: no time is longer than ten years.
  const auto parsed = schema::parse_value(*schema::find_key(option.key), text);
  if (!parsed) return base::usage_failure(format("{}: {}", place, parsed.failure().text));
  return format("{}", *number);
}

}  // namespace trireme::launch
