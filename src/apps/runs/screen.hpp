// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/cli/terminal.hpp"

#include <termios.h>

#include <chrono>
#include <string>

namespace trireme::apps {

/// Standard output's terminal, taken over for pictures that replace one another: its alternate
/// screen, so that what stood there before comes back, without a cursor; keys of standard input
/// arrive one by one. Given back when destroyed; SIGINT, SIGTERM and SIGHUP end wait() meanwhile.
class Screen {
 public:
  Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;
  ~Screen();

  /// Size at this moment.
  TerminalSize size() const;
  /// Draws lines, each of which ends with a line break, over the picture before.
  void draw(const std::string& lines);

  enum class Event {
    none,     ///< the time is over
    resized,  ///< the terminal has another size than at the last drawing
    end       ///< 'q', Ctrl-C, or a signal that ends the program
  };
  /// Waits so long at most.
  Event wait(std::chrono::milliseconds time);

 private:
  bool has_keys_ = false;
  termios keys_before_{};
  TerminalSize drawn_{};
};

}  // namespace trireme::apps
