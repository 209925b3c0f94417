// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/contract.hpp"
#include "trireme/schema/options.hpp"
#include "trireme/schema/schema.hpp"

#include "keys.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

/// Rows of keys, made from members of the options: name, type, choices and whether it may be `auto`
/// are the member's. What does not go together does not compile. Private to the room.
namespace trireme::schema {

/// A template's argument as compilers write it: "&TrainOptions::steps", "Precision::bf16".
template <auto Argument>
consteval std::string_view spelling() {
  const std::string_view text = std::source_location::current().function_name();
  const auto begin = text.find("Argument = ");
  return text.substr(begin, text.find_first_of(";]", begin) - begin);
}

/// Name of a member or an enumerator; empty for a number that no enumerator has, "(Precision)3".
template <auto Argument>
constexpr std::string_view name_of =
    spelling<Argument>().find('(') == std::string_view::npos
        ? spelling<Argument>().substr(spelling<Argument>().rfind(':') + 1)
        : "";

/// Member at the end of a path of members within members.
template <auto First, auto... Rest>
constexpr auto& member(auto& whole) {
  if constexpr (sizeof...(Rest) == 0) {
    return whole.*First;
  } else {
    return member<Rest...>(whole.*First);
  }
}

/// Names on such a path, "rope_scaling.factor".
template <auto... Path>
constexpr auto joined_names = [] {
  std::array<char, (name_of<Path>.size() + ...) + sizeof...(Path) - 1> letters{};
  auto* to = letters.data();
  const auto add = [&](std::string_view name) {
    if (to != letters.data()) *to++ = '.';
    to = std::copy(name.begin(), name.end(), to);
  };
  (add(name_of<Path>), ...);
  return letters;
}();

/// True if an enum has as many words as values, and no value has the word that is another's name.
template <typename Enum>
consteval bool has_words() {
  constexpr auto& words = choices_of<Enum>;
  return []<std::size_t... index>(std::index_sequence<index...>) {
    const auto is_own = [](std::string_view name, std::size_t place) {
      const auto* const found = std::find(words.begin(), words.end(), name);
      return !name.empty() && (found == words.end() || found == words.begin() + place);
    };
    return (is_own(name_of<static_cast<Enum>(index)>, index) && ...) &&
           name_of<static_cast<Enum>(words.size())>.empty();
  }
  (std::make_index_sequence<words.size()>());
}

template <typename Member>
struct Held {
  using Type = Member;
  static constexpr bool may_be_auto = false;
};
template <typename Member>
struct Held<std::optional<Member>> {
  using Type = Member;
  static constexpr bool may_be_auto = true;
};

template <typename T>
consteval Type type_of() {
  if (std::is_enum_v<T>) return Type::choice;
  if (std::is_same_v<T, bool>) return Type::flag;
  if (std::is_same_v<T, int> || std::is_same_v<T, std::int64_t>) return Type::integer;
  if (std::is_same_v<T, double>) return Type::real;
  if (std::is_same_v<T, std::string>) return Type::text;
  if (std::is_same_v<T, std::vector<std::int64_t>>) return Type::integers;
  if (std::is_same_v<T, std::vector<std::string>>) return Type::texts;
  TRIREME_EXPECT((std::is_same_v<T, std::vector<WeightedText>>), "a member has a key's type");
  return Type::weighted_texts;
}

template <typename T>
void store(T& member, const Value& value) {
  // A value that a search is still to choose is the default until then.
  if (std::holds_alternative<Automatic>(value)) return;
  if constexpr (std::is_enum_v<T>) {
    const auto& words = choices_of<T>;
    const auto* const found = std::find(words.begin(), words.end(), std::get<std::string>(value));
    member = static_cast<T>(found - words.begin());
  } else if constexpr (std::is_same_v<T, int>) {
    member = static_cast<int>(std::get<std::int64_t>(value));
  } else {
    member = std::get<T>(value);
  }
}
template <typename T>
void store(std::optional<T>& member, const Value& value) {
  member.reset();
  if (!std::holds_alternative<Automatic>(value)) store(member.emplace(), value);
}

template <typename T>
Value loaded(const T& member) {
  if constexpr (std::is_enum_v<T>) {
    return std::string(choices_of<T>[static_cast<std::size_t>(member)]);
  } else if constexpr (std::is_same_v<T, int>) {
    return std::int64_t{member};
  } else {
    return member;
  }
}
template <typename T>
Value loaded(const std::optional<T>& member) {
  return member ? loaded(*member) : Value(Automatic());
}

/// Facts of a key beside its default and documentation.
struct Facts {
  /// The section's, unless it is given.
  std::optional<Concern> concern = {};
  /// Type::bytes of an integer, Type::seconds of a real number.
  std::optional<Type> type = {};
  std::string_view unit = {};
  Range range = {};
  /// The rule by which it is chosen before anybody reads it, for a member that is not optional.
  std::string_view auto_rule = {};
};

/// Maker of the rows of a section, a member of Options.
template <auto Section>
struct Rows {
  /// Concern of most of its keys.
  Concern concern = Concern::running;

  /// Row of one member, or of a member within it.
  template <auto... Path>
  consteval Key key(std::string_view default_text, const Facts& facts,
                    std::string_view documentation) const {
    using Member =
        std::remove_reference_t<decltype(member<Section, Path...>(std::declval<Options&>()))>;
    using T = typename Held<Member>::Type;
    constexpr auto own_type = type_of<T>();
    const auto type = facts.type.value_or(own_type);
    TRIREME_EXPECT(type == own_type || (type == Type::bytes && own_type == Type::integer) ||
                       (type == Type::seconds && own_type == Type::real),
                   "the type is the member's");
    TRIREME_EXPECT(!Held<Member>::may_be_auto || !facts.auto_rule.empty(),
                   "a rule for auto is given where the member is optional");
    TRIREME_EXPECT((!std::is_same_v<T, int> || (facts.range.minimum.value_or(-1) >= 0 &&
                                                facts.range.maximum.value_or(1e18) <= count_max)),
                   "an int holds the range");
    Key key{
        .section = name_of<Section>,
        .name = {joined_names<Path...>.data(), joined_names<Path...>.size()},
        .type = type,
        .concern = facts.concern.value_or(concern),
        .default_text = default_text,
        .unit = facts.unit,
        .range = facts.range,
        .auto_rule = facts.auto_rule,
        .documentation = documentation,
        .store =
            [](Options& options, const Value& value) {
              schema::store(member<Section, Path...>(options), value);
            },
        .load = [](const Options& options) { return loaded(member<Section, Path...>(options)); }};
    if constexpr (std::is_enum_v<T>) {
      static_assert(has_words<T>(), "each value of the enum has its word in choices_of");
      key.choices = choices_of<T>;
    }
    return key;
  }
  template <auto... Path>
  consteval Key key(std::string_view default_text, std::string_view documentation) const {
    return key<Path...>(default_text, {}, documentation);
  }
};

}  // namespace trireme::schema
