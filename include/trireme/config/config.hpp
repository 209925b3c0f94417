// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/environment.hpp"
#include "trireme/base/result.hpp"
#include "trireme/config/options.hpp"
#include "trireme/schema/schema.hpp"
#include "trireme/schema/value.hpp"

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trireme::config {

/// A value that the launch brought: "srun --tensor-parallel" says parallel.tensor = 2.
struct Launched {
  std::string key;
  std::string text;
  std::string origin;
};

/// Sources of values, weakest first: default < files from left to right < the launch < environment
/// TRIREME_SECTION__KEY < settings "section.key=value" (a later one wins).
struct Sources {
  std::vector<std::filesystem::path> files;
  base::Environment environment;
  std::vector<std::string> settings;
  std::vector<Launched> launched = {};
};

/// Source of one value.
struct Origin {
  enum class Kind { standard, file, launch, environment, command_line, program };
  Kind kind = Kind::standard;
  /// Path, what launched, name of the variable, or what the program says of itself.
  std::string where;
  /// Line of the file, from 1.
  int line = 0;

  static Origin program(std::string who) { return {Kind::program, std::move(who), 0}; }
  /// "default", "a.conf:3", "srun --tensor-parallel", "TRIREME_TRAIN__STEPS", "--set", "a program's
  /// own words".
  std::string text() const;
  bool operator==(const Origin&) const = default;
};

/// All keys with their values and origins; a value that does not change. Code reads options();
/// what goes by a key's name is for people. Asking for an unknown key breaks a contract.
class Config {
 public:
  /// Configuration of defaults.
  Config();
  /// Reads all sources and checks values and their agreement (checks.hpp). The failure lists
  /// every mistake found, one a line: "origin: key = value problem (why); fix".
  static base::Result<Config> resolve(const Sources& sources);

  const Options& options() const { return options_; }

  /// True if the value is `auto`. False for keys that cannot be.
  bool automatic(std::string_view key) const;
  /// True if any source set it. (It may still equal the default.)
  bool given(std::string_view key) const;
  const Origin& origin(std::string_view key) const;
  const schema::Value& value(std::string_view key) const;
  /// Canonical text of the value, as resolved_text() has it.
  std::string shown(std::string_view key) const;
  /// "train.steps = 100 (a.conf:3)": for errors about keys that do not fit together.
  std::string cited(std::string_view key) const;

  /// A copy with one other value, checked by itself; call check() when all are in place.
  base::Result<Config> with(std::string_view key, std::string_view text,
                            const Origin& origin) const;

  enum class Origins { hidden, shown };
  /// A file with every key and value (origins as comments). Loading it gives the same values.
  std::string resolved_text(Origins origins = Origins::shown) const;

  /// Digest of all values, the same on every machine: ranks agree on it at start.
  std::uint64_t hash() const;
  /// Digest of the values of some sections only.
  std::uint64_t fingerprint_of_sections(std::span<const std::string_view> names) const;

  /// Equality of values; origins do not count.
  bool operator==(const Config& other) const;

 private:
  struct Entry {
    schema::Value value;
    Origin origin;
  };
  friend class Resolver;

  const Entry& entry(std::string_view key) const;
  void set(const schema::Key& key, schema::Value value, Origin origin);
  /// Entries in the order of schema::keys().
  std::vector<Entry> entries_;
  /// Typed values of these entries.
  Options options_;
};

/// A key whose values differ.
struct Difference {
  std::string key;
  std::string first;
  std::string second;
  Origin first_origin;
  Origin second_origin;
  schema::Concern concern;
};
std::vector<Difference> diff(const Config& first, const Config& second);

/// run.directory, or runs/<run.name> where that is `auto`.
std::filesystem::path run_directory(const Config& config);
/// Name of a run in its record: run.name where it is set, else its folder's name.
std::string run_label(const Config& config);

}  // namespace trireme::config
