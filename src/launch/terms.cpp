#include "trireme/launch/terms.hpp"

#include "trireme/base/format.hpp"
#include "trireme/base/suggest.hpp"

#include "text.hpp"

#include <algorithm>
#include <charconv>

namespace trireme::launch {
namespace {

using base::format;

/// More ranks than any machine has; keeps products of three degrees inside 64 bits.
constexpr int largest_degree = 1 << 20;
constexpr int seconds_of_a_week = 7 * 24 * 3600;
constexpr std::size_t longest_value = 4096;

void add_layout(std::vector<Term>& all) {
  all.push_back({.option = "trireme",
                 .variable = "TRIREME_LAUNCH",
                 .words = {"on", "off"},
                 .argument = "on|off",
                 .usage = "prepare tasks for trireme; off ignores what the job asks for"});
  all.push_back({.option = "tensor-parallel",
                 .variable = "TRIREME_TENSOR_PARALLEL",
                 .key = "parallel.tensor",
                 .minimum = 1,
                 .maximum = largest_degree,
                 .argument = "N",
                 .usage = "ranks that share every matrix, inside a node"});
  all.push_back({.option = "pipeline-parallel",
                 .variable = "TRIREME_PIPELINE_PARALLEL",
                 .key = "parallel.pipeline",
                 .minimum = 1,
                 .maximum = largest_degree,
                 .argument = "N",
                 .usage = "stages that share the layers"});
  all.push_back({.option = "data-parallel",
                 .variable = "TRIREME_DATA_PARALLEL",
                 .key = "parallel.data",
                 .minimum = 1,
                 .maximum = largest_degree,
                 .words = {"auto"},
                 .argument = "N|auto",
                 .usage = "replicas that share the global batch (auto: what is left)"});
  all.push_back({.option = "zero-level",
                 .variable = "TRIREME_ZERO_LEVEL",
                 .key = "parallel.zero_level",
                 .minimum = 0,
                 .maximum = 1,
                 .argument = "0|1",
                 .usage = "what replicas divide among themselves"});
}

void add_running(std::vector<Term>& all) {
  all.push_back({.option = "micro-batch",
                 .variable = "TRIREME_MICRO_BATCH",
                 .key = "train.micro_batch",
                 .minimum = 1,
                 .maximum = largest_degree,
                 .argument = "N",
                 .usage = "sequences of one forward"});
  all.push_back({.option = "trireme-order",
                 .variable = "TRIREME_ORDER",
                 .key = "run.order",
                 .words = {"topology", "slurm"},
                 .argument = "topology|slurm",
                 .usage = "order of ranks: by the network, or as Slurm numbers tasks"});
  all.push_back({.option = "trireme-binding",
                 .variable = "TRIREME_BINDING",
                 .key = "run.binding",
                 .words = {"auto", "none"},
                 .argument = "auto|none",
                 .usage = "whether each rank is bound to cores of its own"});
  all.push_back({.option = "trireme-signal-lead",
                 .variable = "TRIREME_SIGNAL_LEAD",
                 .key = "run.signal_lead",
                 .minimum = 0,
                 .maximum = seconds_of_a_week,
                 .words = {"auto"},
                 .argument = "SECONDS|auto",
                 .usage = "how long before the time limit the job saves and stops"});
  all.push_back({.option = "trireme-set",
                 .variable = "TRIREME_SET",
                 .is_setting = true,
                 .argument = "section.key=value",
                 .usage = "set a key of the configuration; may be repeated"});
}

std::vector<std::string> choices_near(const Term& term, std::string_view text) {
  std::vector<std::string> choices(term.words.begin(), term.words.end());
  if (!term.is_number()) return choices;
  if (term.maximum - term.minimum < 8) {
    for (int number = term.minimum; number <= term.maximum; ++number) {
      choices.push_back(format("{}", number));
    }
    return choices;
  }
  const bool too_large = text.size() > 4 && std::all_of(text.begin(), text.end(), is_digit);
  choices.push_back(format("{}", too_large ? term.maximum : std::max(term.minimum, 1)));
  if (!too_large) choices.push_back(format("{}", std::max(term.minimum, 1) * 2));
  return choices;
}

base::Failure refused(const Term& term, std::string_view text, std::string_view place) {
  const auto near = choices_near(term, text);
  const auto word = base::nearest_word(text, near);
  const auto advice = word && !is_digit(word->front()) ? format("did you mean {}?", *word)
                                                       : format("try {}", base::join(near, ", "));
  return base::usage_failure(format("{} = {} is not {} ({}); {}", place, shown(text),
                                    permitted_text(term), term.usage, advice));
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

std::span<const Term> terms() {
  static const auto all = [] {
    std::vector<Term> made;
    add_layout(made);
    add_running(made);
    return made;
  }();
  return all;
}

const Term* find_option(std::string_view option) {
  const auto found = std::find_if(terms().begin(), terms().end(),
                                  [&](const Term& term) { return term.option == option; });
  return found == terms().end() ? nullptr : &*found;
}

const Term* find_variable(std::string_view variable) {
  const auto found = std::find_if(terms().begin(), terms().end(),
                                  [&](const Term& term) { return term.variable == variable; });
  return found == terms().end() ? nullptr : &*found;
}

std::string permitted_text(const Term& term) {
  if (term.is_setting) return "section.key=value";
  std::vector<std::string> parts;
  if (term.is_number())
    parts.push_back(format("a number from {} to {}", term.minimum, term.maximum));
  parts.insert(parts.end(), term.words.begin(), term.words.end());
  return format("{}", base::join(parts, " or "));
}

base::Result<std::string> parse_value(const Term& term, std::string_view text,
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
  if (term.is_setting) return parse_setting(text, place);
  if (std::find(term.words.begin(), term.words.end(), text) != term.words.end()) {
    return std::string(text);
  }
  const auto number = parse_number(text);
  if (term.is_number() && number && *number >= term.minimum && *number <= term.maximum) {
    return format("{}", *number);
  }
  return refused(term, text, place);
}

}  // namespace trireme::launch
