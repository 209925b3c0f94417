#pragma once

#include "trireme/base/id.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace trireme::comm {

/// What can be said of a rank that others miss.
struct Sighting {
  enum class State : std::int32_t {
    silent,     ///< nobody says anything of it
    computing,  ///< it lives, and waits for nobody
    waiting,    ///< for others, which are to blame in its place
    halted      ///< stopped by a signal, dead, or gone: it will not come
  };
  State state = State::silent;
  /// Whom it waits for: the first few.
  std::vector<base::Rank> awaited;
  /// "rank 3 (process 4711 on n2, stopped by a signal)"; empty when it is silent.
  std::string text;
};

/// Who holds up everybody, as far as the others can tell.
struct Blame {
  /// Ascending; never empty.
  std::vector<base::Rank> ranks;
  /// What is known of each.
  std::vector<std::string> texts;
  /// "node n3 is cut off: …" where that explains all; else empty.
  std::string cut_off;
};

}  // namespace trireme::comm
