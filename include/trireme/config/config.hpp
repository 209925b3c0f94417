#pragma once

#include "trireme/base/environment.hpp"
#include "trireme/base/result.hpp"
#include "trireme/config/schema.hpp"
#include "trireme/config/value.hpp"

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

/// Where values come from, weakest first: default < files from left to right < the launch <
/// environment TRIREME_SECTION__KEY < settings "section.key=value" (a later one wins).
struct Sources {
  std::vector<std::filesystem::path> files;
  base::Environment environment;
  std::vector<std::string> settings;
  std::vector<Launched> launched = {};
};

/// Where one value comes from.
struct Origin {
  enum class Kind { standard, file, launch, environment, command_line, program };
  Kind kind = Kind::standard;
  /// Path, what launched, name of the variable, or what the program says of itself.
  std::string where;
  /// In a file, from 1.
  int line = 0;

  static Origin program(std::string who) { return {Kind::program, std::move(who), 0}; }
  /// "default", "a.conf:3", "srun --tensor-parallel", "TRIREME_TRAIN__STEPS", "--set", "a program's
  /// own words".
  std::string text() const;
  bool operator==(const Origin&) const = default;
};

/// All keys with their values and origins; a value that does not change.
/// Asking for an unknown key, or with the accessor of another type, breaks a contract: key names
/// in code are checked by the first test that reaches them.
class Config {
 public:
  /// Everything at its default.
  Config();
  /// Reads all sources and checks values and their agreement (checks.hpp). The failure lists
  /// every mistake found, one a line: "origin: key = value problem (why); fix".
  static base::Result<Config> resolve(const Sources& sources);

  /// Type::integer. A key that is `auto` has no integer: ask automatic() before.
  std::int64_t integer(std::string_view key) const;
  /// integer() of a key whose range fits an int (all but seeds).
  int count(std::string_view key) const;
  double real(std::string_view key) const;
  bool flag(std::string_view key) const;
  /// Type::text and Type::choice.
  const std::string& text(std::string_view key) const;
  std::int64_t bytes(std::string_view key) const;
  double seconds(std::string_view key) const;
  const std::vector<std::int64_t>& integers(std::string_view key) const;
  const std::vector<std::string>& texts(std::string_view key) const;
  const std::vector<WeightedText>& weighted_texts(std::string_view key) const;

  /// Is the value `auto`? False for keys that cannot be.
  bool automatic(std::string_view key) const;
  /// The value, or `otherwise` where it is `auto`.
  std::int64_t integer_or(std::string_view key, std::int64_t otherwise) const;
  int count_or(std::string_view key, int otherwise) const;
  double real_or(std::string_view key, double otherwise) const;
  bool flag_or(std::string_view key, bool otherwise) const;
  std::string text_or(std::string_view key, std::string_view otherwise) const;

  /// Was it set by any source? (It may still equal the default.)
  bool given(std::string_view key) const;
  const Origin& origin(std::string_view key) const;
  const Value& value(std::string_view key) const;
  /// Canonical text of the value, as resolved_text() has it.
  std::string shown(std::string_view key) const;
  /// "train.steps = 100 (a.conf:3)": for errors about keys that do not fit together.
  std::string cited(std::string_view key) const;
  std::span<const Key> keys() const { return schema(); }

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

  /// Same values; origins do not count.
  bool operator==(const Config& other) const;

 private:
  struct Entry {
    Value value;
    Origin origin;
  };
  friend class Resolver;

  const Entry& entry(std::string_view key) const;
  template <typename T>
  const T& get(std::string_view key, std::span<const Type> types) const;

  /// In the order of schema().
  std::vector<Entry> entries_;
};

/// A key whose values differ.
struct Difference {
  std::string key;
  std::string first;
  std::string second;
  Origin first_origin;
  Origin second_origin;
  Concern concern;
};
std::vector<Difference> diff(const Config& first, const Config& second);

/// run.directory, or runs/<run.name> where that is `auto`.
std::filesystem::path run_directory(const Config& config);

}  // namespace trireme::config
