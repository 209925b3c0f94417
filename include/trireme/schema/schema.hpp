// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/schema/value.hpp"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trireme::schema {

struct Options;

/// Kind of a key's value. Each has one C++ type in `Value` (value.hpp).
enum class Type {
  integer,         ///< whole number, int64
  real,            ///< finite decimal number, double
  text,            ///< any text without '#', string
  flag,            ///< true or false, bool
  choice,          ///< one of `Key::choices`, string
  bytes,           ///< size such as 16GiB, int64 of bytes
  seconds,         ///< time such as 1h30m, double of seconds
  integers,        ///< comma-separated whole numbers
  texts,           ///< comma-separated texts
  weighted_texts,  ///< comma-separated texts, each with an optional ":weight"
};

/// "integer", "list of text", ...: for people.
std::string_view name(Type type);

/// Effect of a changed key on a run that resumes from a checkpoint of another value.
enum class Concern {
  model,     ///< another model: the checkpoint does not fit
  training,  ///< other numbers from here on
  layout,    ///< other places for the same numbers
  running,   ///< storage, display, timing of the run
};
std::string_view name(Concern concern);

/// Ends of the permitted range, both inclusive unless `above` or `below` is set.
struct Range {
  std::optional<double> minimum = {};
  std::optional<double> maximum = {};
  /// The minimum itself is refused.
  bool above = false;
  /// The maximum itself is refused.
  bool below = false;
};

/// One row of the table that everything about configuration is made from: parsing, checking,
/// errors, docs/configuration.md, the man page and the shell completion.
struct Key {
  std::string_view section = {};
  std::string_view name = {};
  Type type = Type::text;
  Concern concern = Concern::running;
  /// Default as a file would write it; parsed by the same code. "auto" needs an `auto_rule`.
  std::string_view default_text = {};
  /// Unit of the value: "steps", "tokens", "FLOP/s"; empty if it has none.
  std::string_view unit = {};
  Range range = {};
  std::span<const std::string_view> choices = {};
  /// Rule for the value `auto`: what it becomes. Empty if the value may not be `auto`.
  std::string_view auto_rule = {};
  /// Sentences. The first clause says what the key is; errors quote it.
  std::string_view documentation = {};
  /// Puts a value of this key into its member (options.hpp).
  void (*store)(Options& options, const Value& value) = nullptr;
  /// The member's value.
  Value (*load)(const Options& options) = nullptr;

  /// "section.name".
  std::string full_name() const;
  /// "TRIREME_SECTION__NAME"; a dot inside the name becomes two underscores, too.
  std::string environment_name() const;
  bool allows_auto() const { return !auto_rule.empty(); }
};

struct Section {
  std::string_view name;
  std::string_view documentation;
};

/// All sections and all keys, in the order in which they are shown. Keys of a section are
/// neighbours.
std::span<const Section> sections();
std::span<const Key> keys();

/// Key of this full name; null when there is none.
const Key* find_key(std::string_view full_name);

/// "; did you mean 'train.steps'?" or nothing: knows misspellings, forgotten and wrong sections,
/// and what other trainers call the same thing.
std::string key_suggestion(std::string_view full_name);

/// "1 or more", "from 0 to 1", "one of a, b, c": what a value of this key may be, in words.
std::string permitted_text(const Key& key);

}  // namespace trireme::schema
